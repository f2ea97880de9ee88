// Runs a serialized pipeline on image files, each in a thread and an instance of its own, and prints what the outputs
// hold: type, shape, smallest, largest and mean value.
//
//   c++ -std=c++17 -Iinclude examples/cpp/statistics.cpp -o statistics target/release/libtriton_gesso.so -pthread
//   LD_LIBRARY_PATH=target/release ./statistics model.dali a.jpg b.jpg
#include <gesso.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

void check(gesso_status status) {
  if (status != GESSO_STATUS_OK) throw std::runtime_error(gesso_last_error());
}

template <typename T, void (*Free)(T *)>
struct Freed {
  void operator()(T *handle) const { Free(handle); }
};
using Pipeline = std::unique_ptr<gesso_pipeline, Freed<gesso_pipeline, gesso_pipeline_free>>;
using Instance = std::unique_ptr<gesso_instance, Freed<gesso_instance, gesso_instance_free>>;
using Result = std::unique_ptr<gesso_result, Freed<gesso_result, gesso_result_free>>;

std::vector<std::uint8_t> read_file(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

Pipeline load(const std::string &path) {
  const auto bytes = read_file(path);
  gesso_pipeline *pipeline;
  check(gesso_pipeline_load(bytes.data(), bytes.size(), GESSO_DEVICE_CPU, &pipeline));
  return Pipeline(pipeline);
}

template <typename T>
std::string statistics(const gesso_tensor &tensor) {
  const auto *values = static_cast<const T *>(tensor.data);
  const std::size_t count = tensor.bytes / sizeof(T);
  if (count == 0) return "empty";
  double sum = 0, low = static_cast<double>(values[0]), high = low;
  for (std::size_t i = 0; i < count; i++) {
    const auto value = static_cast<double>(values[i]);
    sum += value;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  char text[128];
  std::snprintf(text, sizeof text, "min %.4f max %.4f mean %.4f", low, high, sum / static_cast<double>(count));
  return text;
}

std::string describe(const gesso_tensor &tensor) {
  std::string text = "[";
  for (int d = 0; d < tensor.ndim; d++) text += (d ? ", " : "") + std::to_string(tensor.shape[d]);
  text += std::string("] ") + tensor.layout + " ";
  switch (tensor.dtype) {
    case GESSO_DTYPE_UINT8: return text + "uint8 " + statistics<std::uint8_t>(tensor);
    case GESSO_DTYPE_INT32: return text + "int32 " + statistics<std::int32_t>(tensor);
    case GESSO_DTYPE_INT64: return text + "int64 " + statistics<std::int64_t>(tensor);
    case GESSO_DTYPE_FLOAT32: return text + "float32 " + statistics<float>(tensor);
    case GESSO_DTYPE_FLOAT64: return text + "float64 " + statistics<double>(tensor);
    default: return text + "of another type";
  }
}

// The memory of one output: the library writes there.
struct Memory {
  std::vector<std::unique_ptr<std::uint64_t[]>> blocks;

  static std::int32_t allocate(void *user, std::size_t, std::size_t, const gesso_tensor *tensor, gesso_target *target) {
    try {
      auto &blocks = static_cast<Memory *>(user)->blocks;
      blocks.push_back(std::make_unique<std::uint64_t[]>(tensor->bytes / 8 + 1));
      target->data = blocks.back().get();
      return 0;
    } catch (const std::exception &) {
      return 1;
    }
  }
};

std::string run(const gesso_pipeline *pipeline, const std::string &path) {
  gesso_instance_options options{};
  options.struct_size = sizeof options;
  options.num_threads = 1;
  gesso_instance *made;
  check(gesso_instance_create(pipeline, &options, &made));
  const Instance instance(made);

  gesso_tensor_info info{};
  info.struct_size = sizeof info;
  check(gesso_pipeline_input(pipeline, 0, &info));
  const auto file = read_file(path);
  const auto length = static_cast<std::int64_t>(file.size());
  const gesso_sample sample{sizeof sample, file.data(), &length, 1};
  const gesso_input input{sizeof input, info.name, GESSO_DTYPE_UINT8, GESSO_DEVICE_CPU, &sample, nullptr, nullptr};
  Memory memory;
  gesso_result *given;
  check(gesso_instance_run_into(instance.get(), 1, &input, 1, Memory::allocate, &memory, &given));
  const Result result(given);

  const char *message;
  if (gesso_result_sample_status(result.get(), 0, &message) != GESSO_STATUS_OK) throw std::runtime_error(message);
  std::string text;
  for (std::size_t i = 0; i < gesso_pipeline_output_count(pipeline); i++) {
    gesso_tensor tensor{};
    tensor.struct_size = sizeof tensor;
    check(gesso_result_tensor(result.get(), i, 0, &tensor));
    gesso_tensor_info output{};
    output.struct_size = sizeof output;
    check(gesso_pipeline_output(pipeline, i, &output));
    text += path + " " + output.name + " " + describe(tensor) + "\n";
  }
  return text;
}

}  // namespace

int main(int argc, char **argv) try {
  if (argc < 3) {
    std::fprintf(stderr, "usage: %s PIPELINE IMAGE...\n", argv[0]);
    return 2;
  }
  const Pipeline pipeline = load(argv[1]);
  std::vector<std::string> texts(argc - 2), errors(argc - 2);
  std::vector<std::thread> threads;
  for (int i = 0; i < argc - 2; i++) {
    threads.emplace_back([&, i] {
      try {
        texts[i] = run(pipeline.get(), argv[i + 2]);
      } catch (const std::exception &error) {
        errors[i] = error.what();
      }
    });
  }
  for (auto &thread : threads) thread.join();
  bool failed = false;
  for (int i = 0; i < argc - 2; i++) {
    std::fputs(texts[i].c_str(), stdout);
    if (!errors[i].empty()) {
      std::fprintf(stderr, "%s: %s\n", argv[i + 2], errors[i].c_str());
      failed = true;
    }
  }
  return failed;
} catch (const std::exception &error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}

// For each anchor of a detector the bounding box that it stands for, and its label, as src/ops/boxes/box_encoder.rs
// finds them. A row of the table is a sample; a block works on one.
#include "common.cuh"

struct Box {
  float corners[4];  // left, top, right, bottom
};

#include "layouts/box_encoder.cuh"

__device__ inline float area(const Box &box) { return (box.corners[2] - box.corners[0]) * (box.corners[3] - box.corners[1]); }

__device__ inline float intersection_over_union(const Box &a, const Box &b) {
  const float width = fmaxf(fminf(a.corners[2], b.corners[2]) - fmaxf(a.corners[0], b.corners[0]), 0);
  const float height = fmaxf(fminf(a.corners[3], b.corners[3]) - fmaxf(a.corners[1], b.corners[1]), 0);
  const float shared = width * height;
  return shared / (area(a) + area(b) - shared);
}

// Center, width and height.
__device__ inline Box centered(const Box &box, float scale) {
  const float *c = box.corners;
  return {{0.5f * (c[0] + c[2]) * scale, 0.5f * (c[1] + c[3]) * scale, (c[2] - c[0]) * scale, (c[3] - c[1]) * scale}};
}

// What is told of a box that `anchor` stands for; of an anchor that stands for none, itself.
__device__ inline Box told(const Params &params, const Box &anchor, const Box *matched) {
  if (!params.tells_offsets) return centered(matched ? *matched : anchor, 1);
  if (!matched) return {{0, 0, 0, 0}};
  const Box a = centered(anchor, params.scale), b = centered(*matched, params.scale);
  Box found = {{(b.corners[0] - a.corners[0]) / a.corners[2], (b.corners[1] - a.corners[1]) / a.corners[3],
                logf(b.corners[2] / a.corners[2]), logf(b.corners[3] / a.corners[3])}};
  for (int i = 0; i < 4; i++) found.corners[i] = (found.corners[i] - params.means[i]) / params.stds[i];
  return found;
}

extern "C" __global__ void box_encoder(const Row *rows, uint32_t count, Params params) {
  const Row &row = rows[blockIdx.y];
  // The box that an anchor has most in common with, if that is enough; of equals the last.
  for (uint64_t k = threadIdx.x; k < params.count; k += blockDim.x) {
    const Box anchor = params.anchors[k];
    float best = params.criteria;
    int32_t matched = -1;
    for (uint64_t i = 0; i < row.count; i++) {
      const float common = intersection_over_union(row.boxes[i], anchor);
      if (common > params.criteria && common >= best) best = common, matched = i;
    }
    row.labels_told[k] = matched;
  }
  // The anchor that a box has most in common with: a warp looks for that of one.
  const uint32_t lane = threadIdx.x & 31;
  for (uint64_t i = threadIdx.x / 32; i < row.count; i += blockDim.x / 32) {
    const Box box = row.boxes[i];
    float most = -1;
    uint32_t closest = 0;
    for (uint64_t k = lane; k < params.count; k += 32) {
      const float common = intersection_over_union(box, params.anchors[k]);
      if (common >= most) most = common, closest = k;
    }
    for (uint32_t bit = 16; bit > 0; bit /= 2) {
      const float other = __shfl_xor_sync(~0u, most, bit);
      const uint32_t its = __shfl_xor_sync(~0u, closest, bit);
      if (other > most || (other == most && its > closest)) most = other, closest = its;
    }
    if (lane == 0) row.closest[i] = closest;
  }
  __syncthreads();
  // Every box has its anchor, the last one where several want it.
  if (threadIdx.x == 0)
    for (uint64_t i = 0; i < row.count; i++) row.labels_told[row.closest[i]] = i;
  __syncthreads();
  for (uint64_t k = threadIdx.x; k < params.count; k += blockDim.x) {
    const int32_t matched = row.labels_told[k];
    row.told[k] = told(params, params.anchors[k], matched < 0 ? nullptr : &row.boxes[matched]);
    row.labels_told[k] = matched < 0 ? 0 : row.labels[matched];
  }
}

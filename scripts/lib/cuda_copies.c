/* Counts what the process that loads it copies between a host and its GPUs. CUDA's driver loads the library that
 * CUDA_INJECTION64_PATH names and calls `InitializeInjection`; cuda_copies.py makes the library, sets the variables and
 * reads what is written.
 *
 *   GESSO_CUPTI   path of CUPTI's library
 *   GESSO_COPIES  a folder, which gets a file named like the process: `reports N`, then a line for each kind: number of
 *                 copies, bytes, the largest one's bytes; or `error WHAT`
 *
 * What kernels read and write themselves is not a copy to CUPTI, wherever it lies. Its headers are not needed. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COPY = 1, COPY_BETWEEN_DEVICES = 22, BUFFER_BYTES = 1 << 20, PERIOD_US = 50000 };

/* CUPTI's kinds of copies by number; A is an array. */
static const char *const KINDS[] = {"other", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP"};
enum { KIND_COUNT = sizeof KINDS / sizeof *KINDS };

/* How the record of a copy begins, in every version of CUPTI. */
struct copy {
    uint32_t record;
    uint8_t kind, source, target, flags;
    uint64_t bytes;
};

typedef void asked_for_buffer(uint8_t **, size_t *, size_t *);
typedef void got_records(void *, uint32_t, uint8_t *, size_t, size_t);
static int (*enable)(uint32_t);
static int (*register_callbacks)(asked_for_buffer *, got_records *);
static int (*next_record)(uint8_t *, size_t, struct copy **);
static int (*dropped_records)(void *, uint32_t, size_t *);
static int (*flush)(uint32_t);

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct {
    uint64_t copies, bytes, largest;
} counted[KIND_COUNT];
static size_t lost;

/* Writes what there is beside the file and puts it in its place, so that readers see all of it or nothing. */
static void report(const char *format, ...) {
    char path[4096], partial[4112];
    const char *folder = getenv("GESSO_COPIES");
    snprintf(path, sizeof path, "%s/%d", folder ? folder : ".", (int)getpid());
    snprintf(partial, sizeof partial, "%s.part", path);
    FILE *file = fopen(partial, "w");
    if (!file) return;
    va_list arguments;
    va_start(arguments, format);
    vfprintf(file, format, arguments);
    va_end(arguments);
    pthread_mutex_lock(&mutex);
    if (lost) fprintf(file, "error %zu copies were not recorded\n", lost);
    for (int i = 0; i < KIND_COUNT; i++)
        if (counted[i].copies)
            fprintf(file, "%s %llu %llu %llu\n", KINDS[i], (unsigned long long)counted[i].copies, (unsigned long long)counted[i].bytes,
                    (unsigned long long)counted[i].largest);
    pthread_mutex_unlock(&mutex);
    if (fclose(file) == 0) rename(partial, path);
}

static void give_buffer(uint8_t **buffer, size_t *size, size_t *most) {
    *buffer = aligned_alloc(8, BUFFER_BYTES);
    *size = *buffer ? BUFFER_BYTES : 0;
    *most = 0;
}

static void take_records(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
    (void)size;
    struct copy *record = NULL;
    size_t dropped = 0;
    pthread_mutex_lock(&mutex);
    while (valid && next_record(buffer, valid, &record) == 0) {
        if (record->record != COPY && record->record != COPY_BETWEEN_DEVICES) continue;
        int kind = record->kind < KIND_COUNT ? record->kind : 0;
        counted[kind].copies += 1;
        counted[kind].bytes += record->bytes;
        if (record->bytes > counted[kind].largest) counted[kind].largest = record->bytes;
    }
    if (dropped_records(context, stream, &dropped) == 0) lost += dropped;
    pthread_mutex_unlock(&mutex);
    free(buffer);
}

static void *report_forever(void *nothing) {
    for (unsigned long long reports = 1;; reports++) {
        usleep(PERIOD_US);
        flush(0);
        report("reports %llu\n", reports);
    }
    return nothing;
}

static int find(void *library, const char *name, void *function) {
    void *found = dlsym(library, name);
    memcpy(function, &found, sizeof found);
    if (!found) report("error CUPTI has no `%s`\n", name);
    return found != NULL;
}

/* What the driver calls; 1 for success. */
int InitializeInjection(void) {
    const char *path = getenv("GESSO_CUPTI");
    path = path ? path : "libcupti.so";
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    /* A process must have it once: torch brings its own. */
    void *library = dlopen(name, RTLD_NOW | RTLD_NOLOAD);
    if (!library) library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (!library) {
        report("error %s\n", dlerror());
        return 0;
    }
    if (!find(library, "cuptiActivityEnable", &enable) || !find(library, "cuptiActivityRegisterCallbacks", &register_callbacks) ||
        !find(library, "cuptiActivityGetNextRecord", &next_record) || !find(library, "cuptiActivityGetNumDroppedRecords", &dropped_records) ||
        !find(library, "cuptiActivityFlushAll", &flush))
        return 0;
    int status = register_callbacks(give_buffer, take_records);
    if (!status) status = enable(COPY);
    if (!status) status = enable(COPY_BETWEEN_DEVICES);
    if (status) {
        report("error CUPTI returned %d\n", status);
        return 0;
    }
    pthread_t thread;
    report("reports 0\n");
    return pthread_create(&thread, NULL, report_forever, NULL) == 0;
}

/*
 * A stub libnvidia-ml.so.1: answers what assay's probe asks NVML, from a flat JSON file.
 *
 * $NVML_STUB names the file; it is read again whenever it was replaced (replace it by rename). Keys: "count",
 * "driver", and "g<index>.<what>" with numbers in NVML's units. A GPU with a non-zero "g<index>.rc" answers
 * every question with that code; a key that is not there answers NVML_ERROR_NOT_SUPPORTED. Signatures and
 * struct layouts follow NVIDIA's public NVML API reference. One thread at a time, as the probe asks.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef int nvml_return;
typedef unsigned int uint;
typedef unsigned long long ulong64;
typedef struct device { int index; } *nvml_device;

enum { SUCCESS = 0, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, INSUFFICIENT_SIZE = 7,
       DRIVER_NOT_LOADED = 9, MAX_DEVICES = 64, MEMORY_TEMPERATURE = 82, VALUE_IS_UNSIGNED = 1 };

static struct device devices[MAX_DEVICES];
static char *text;          /* the whole file, or NULL */
static struct stat loaded;  /* which file `text` came from */

/* ---- the answers ------------------------------------------------------------------------------------- */

static void load(void) {
  const char *path = getenv("NVML_STUB");
  struct stat now;
  if (!path || stat(path, &now) != 0) { free(text); text = NULL; return; }
  if (text && now.st_ino == loaded.st_ino && now.st_mtim.tv_nsec == loaded.st_mtim.tv_nsec
      && now.st_mtim.tv_sec == loaded.st_mtim.tv_sec) return;
  FILE *file = fopen(path, "r");
  if (!file) return;
  char *fresh = calloc(1, (size_t)now.st_size + 1);
  if (fresh) {
    size_t got = fread(fresh, 1, (size_t)now.st_size, file);
    fresh[got] = 0;
    free(text);
    text = fresh;
    loaded = now;
  }
  fclose(file);
}

/* Returns where the value of `key` begins, NULL when there is none. */
static const char *find(const char *key) {
  char quoted[96];
  load();
  if (!text) return NULL;
  snprintf(quoted, sizeof quoted, "\"%s\"", key);
  const char *at = strstr(text, quoted);
  if (!at) return NULL;
  at += strlen(quoted);
  while (*at == ' ' || *at == ':') at++;
  return at;
}

static nvml_return number(const char *key, ulong64 *out) {
  const char *at = find(key);
  if (!at || *at == '"') return NOT_SUPPORTED;
  *out = strtoull(at, NULL, 10);
  return SUCCESS;
}

static nvml_return string(const char *key, char *out, uint size) {
  const char *at = find(key);
  if (!at || *at != '"') return NOT_SUPPORTED;
  size_t length = strcspn(at + 1, "\"");
  if (length >= size) return INSUFFICIENT_SIZE;
  memcpy(out, at + 1, length);
  out[length] = 0;
  return SUCCESS;
}

static void name_key(char *out, size_t size, nvml_device gpu, const char *what) {
  snprintf(out, size, "g%d.%s", gpu->index, what);
}

/* Returns what a GPU that is not well says to every question, SUCCESS for one that is. */
static nvml_return condition(nvml_device gpu) {
  char key[64];
  ulong64 code = SUCCESS;
  name_key(key, sizeof key, gpu, "rc");
  number(key, &code);
  return (nvml_return)code;
}

static nvml_return gpu_number(nvml_device gpu, const char *what, ulong64 *out) {
  char key[64];
  nvml_return rc = condition(gpu);
  name_key(key, sizeof key, gpu, what);
  return rc ? rc : number(key, out);
}

static nvml_return gpu_uint(nvml_device gpu, const char *what, uint *out) {
  ulong64 answer = 0;
  nvml_return rc = gpu_number(gpu, what, &answer);
  if (!rc) *out = (uint)answer;
  return rc;
}

static nvml_return gpu_string(nvml_device gpu, const char *what, char *out, uint size) {
  char key[64];
  nvml_return rc = condition(gpu);
  name_key(key, sizeof key, gpu, what);
  return rc ? rc : string(key, out, size);
}

/* ---- the library ------------------------------------------------------------------------------------- */

nvml_return nvmlInitWithFlags(uint flags) { (void)flags; return find("count") ? SUCCESS : DRIVER_NOT_LOADED; }
nvml_return nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
nvml_return nvmlShutdown(void) { return SUCCESS; }

/* The bindings know the text of every published code; they ask for that of others. */
const char *nvmlErrorString(nvml_return code) { (void)code; return "Unknown Error"; }

nvml_return nvmlSystemGetDriverVersion(char *out, uint size) { return string("driver", out, size); }

nvml_return nvmlDeviceGetCount_v2(uint *out) {
  ulong64 count = 0;
  nvml_return rc = number("count", &count);
  *out = (uint)count;
  return rc;
}

nvml_return nvmlDeviceGetHandleByIndex_v2(uint index, nvml_device *out) {
  uint count = 0;
  nvml_return rc = nvmlDeviceGetCount_v2(&count);
  if (rc) return rc;
  if (index >= count || index >= MAX_DEVICES) return INVALID_ARGUMENT;
  devices[index].index = (int)index;
  *out = &devices[index];
  return condition(*out);
}

struct pci_info { char legacy[16]; uint domain, bus, device, device_id, subsystem_id; char address[32]; };

nvml_return nvmlDeviceGetPciInfo_v3(nvml_device gpu, struct pci_info *out) {
  char address[32];
  nvml_return rc = gpu_string(gpu, "pci", address, sizeof address);
  if (rc) return rc;
  memset(out, 0, sizeof *out);
  if (sscanf(address, "%x:%x:%x", &out->domain, &out->bus, &out->device) != 3) return NOT_SUPPORTED;
  out->domain &= 0xffff;
  out->bus &= 0xff;
  out->device &= 0x1f;
  snprintf(out->legacy, sizeof out->legacy, "%04X:%02X:%02X.0", out->domain, out->bus, out->device);
  snprintf(out->address, sizeof out->address, "%08X:%02X:%02X.0", out->domain, out->bus, out->device);
  return SUCCESS;
}

nvml_return nvmlDeviceGetIndex(nvml_device gpu, uint *out) { *out = (uint)gpu->index; return condition(gpu); }

#define ANSWERS_STRING(function, what) \
  nvml_return function(nvml_device gpu, char *out, uint size) { return gpu_string(gpu, what, out, size); }
ANSWERS_STRING(nvmlDeviceGetName, "name")
ANSWERS_STRING(nvmlDeviceGetSerial, "serial")
ANSWERS_STRING(nvmlDeviceGetUUID, "uuid")
ANSWERS_STRING(nvmlDeviceGetVbiosVersion, "vbios")

#define ANSWERS_UINT(function, what) \
  nvml_return function(nvml_device gpu, uint *out) { return gpu_uint(gpu, what, out); }
ANSWERS_UINT(nvmlDeviceGetCurrPcieLinkGeneration, "pcie_generation")
ANSWERS_UINT(nvmlDeviceGetCurrPcieLinkWidth, "pcie_width")
ANSWERS_UINT(nvmlDeviceGetPcieReplayCounter, "pcie_replays")
ANSWERS_UINT(nvmlDeviceGetPowerUsage, "power_mw")
ANSWERS_UINT(nvmlDeviceGetEnforcedPowerLimit, "power_limit_mw")
ANSWERS_UINT(nvmlDeviceGetPersistenceMode, "persistence")

nvml_return nvmlDeviceGetTemperature(nvml_device gpu, uint sensor, uint *out) {
  return sensor ? INVALID_ARGUMENT : gpu_uint(gpu, "temperature_c", out);
}

nvml_return nvmlDeviceGetCurrentClocksEventReasons(nvml_device gpu, ulong64 *out) {
  return gpu_number(gpu, "throttle", out);
}
nvml_return nvmlDeviceGetCurrentClocksThrottleReasons(nvml_device gpu, ulong64 *out) {
  return gpu_number(gpu, "throttle", out);
}

nvml_return nvmlDeviceGetEccMode(nvml_device gpu, uint *current, uint *pending) {
  nvml_return rc = gpu_uint(gpu, "ecc_enabled", current);
  *pending = *current;
  return rc;
}

nvml_return nvmlDeviceGetTotalEccErrors(nvml_device gpu, uint uncorrected, uint aggregate, ulong64 *out) {
  char what[64];
  snprintf(what, sizeof what, "ecc_%s_%s", aggregate ? "aggregate" : "volatile",
           uncorrected ? "uncorrected" : "corrected");
  return gpu_number(gpu, what, out);
}

nvml_return nvmlDeviceGetRemappedRows(nvml_device gpu, uint *correctable, uint *uncorrectable, uint *pending,
                                      uint *failed) {
  nvml_return rc = gpu_uint(gpu, "remap_correctable", correctable);
  if (!rc) rc = gpu_uint(gpu, "remap_uncorrectable", uncorrectable);
  if (!rc) rc = gpu_uint(gpu, "remap_pending", pending);
  if (!rc) rc = gpu_uint(gpu, "remap_failed", failed);
  return rc;
}

nvml_return nvmlDeviceGetNvLinkState(nvml_device gpu, uint link, uint *out) {
  uint links = 0, up = 0;
  nvml_return rc = gpu_uint(gpu, "nvlink_links", &links);
  if (!rc) rc = gpu_uint(gpu, "nvlink_up", &up);
  if (rc) return rc;
  if (link >= links) return INVALID_ARGUMENT;
  *out = link < up;
  return SUCCESS;
}

struct field_value {
  uint field, scope;
  long long timestamp, latency_us;
  uint type;
  nvml_return rc;
  union { double d; uint u; unsigned long ul; ulong64 ull; long long ll; } value;
};

nvml_return nvmlDeviceGetFieldValues(nvml_device gpu, int count, struct field_value *fields) {
  nvml_return rc = condition(gpu);
  for (int i = 0; !rc && i < count; i++) {
    fields[i].type = VALUE_IS_UNSIGNED;
    fields[i].rc = fields[i].field == MEMORY_TEMPERATURE
                       ? gpu_uint(gpu, "memory_temperature_c", &fields[i].value.u)
                       : NOT_SUPPORTED;
  }
  return rc;
}

/*
 * A stub libnvidia-ml.so.1: answers what assay's probe and agent ask NVML, from a flat JSON file.
 *
 * $NVML_STUB names the file; it is read again whenever it was replaced (replace it by rename). Keys: "count",
 * "driver", "cuda", "nvml", "slots" ("0 1 3", the GPUs that enumerate, in order; else all up to count), and
 * "g<slot>.<what>" with numbers in NVML's units. A GPU with a non-zero "g<slot>.rc" answers every question with that
 * code; a key that is not there answers NVML_ERROR_NOT_SUPPORTED. "g<slot>.xids" ("79 48") is every XID so far: each
 * comes once to every event set that was registered before. Signatures and struct layouts follow NVIDIA's public NVML
 * API reference. Safe from many threads: one may wait for events while another asks.
 */
#include "answers.h"

nvml_return nvmlInitWithFlags(uint flags) {
  ulong64 count;
  (void)flags;
  return number("count", &count) ? DRIVER_NOT_LOADED : SUCCESS;
}
nvml_return nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
nvml_return nvmlShutdown(void) { return SUCCESS; }

/* The bindings know the text of every published code; they ask for that of others. */
const char *nvmlErrorString(nvml_return code) { (void)code; return "Unknown Error"; }

nvml_return nvmlSystemGetDriverVersion(char *out, uint size) { return string("driver", out, size); }
nvml_return nvmlSystemGetNVMLVersion(char *out, uint size) { return string("nvml", out, size); }

nvml_return nvmlSystemGetCudaDriverVersion_v2(int *out) {
  ulong64 version = 0;
  nvml_return rc = number("cuda", &version);
  *out = (int)version;
  return rc;
}

nvml_return nvmlDeviceGetCount_v2(uint *out) {
  ulong64 count = 0;
  nvml_return rc = number("count", &count);
  *out = (uint)count;
  return rc;
}

nvml_return nvmlDeviceGetHandleByIndex_v2(uint index, nvml_device *out) {
  int slot = slot_at(index);
  if (slot < 0 || slot >= MAX_DEVICES) return INVALID_ARGUMENT;
  devices[slot].slot = slot;
  *out = &devices[slot];
  return condition(*out);
}

struct pci_info { char legacy[16]; uint domain, bus, device, device_id, subsystem_id; char address[32]; };

static nvml_return place(nvml_device gpu, struct pci_info *out) {
  char key[KEY], address[32];
  name_key(key, gpu, "pci");
  nvml_return rc = string(key, address, sizeof address);
  if (rc) return rc;
  memset(out, 0, sizeof *out);
  return sscanf(address, "%x:%x:%x", &out->domain, &out->bus, &out->device) == 3 ? SUCCESS : NOT_SUPPORTED;
}

nvml_return nvmlDeviceGetHandleByPciBusId_v2(const char *address, nvml_device *out) {
  struct pci_info asked, seen;
  if (sscanf(address, "%x:%x:%x", &asked.domain, &asked.bus, &asked.device) != 3) return INVALID_ARGUMENT;
  for (int slot, index = 0; (slot = slot_at((uint)index)) >= 0 && slot < MAX_DEVICES; index++) {
    devices[slot].slot = slot;
    if (place(&devices[slot], &seen) || seen.domain != asked.domain || seen.bus != asked.bus
        || seen.device != asked.device) continue;
    *out = &devices[slot];
    return condition(*out);
  }
  return NOT_FOUND;
}

nvml_return nvmlDeviceGetPciInfo_v3(nvml_device gpu, struct pci_info *out) {
  nvml_return rc = condition(gpu);
  if (!rc) rc = place(gpu, out);
  if (rc) return rc;
  out->domain &= 0xffff;
  out->bus &= 0xff;
  out->device &= 0x1f;
  snprintf(out->legacy, sizeof out->legacy, "%04X:%02X:%02X.0", out->domain, out->bus, out->device);
  snprintf(out->address, sizeof out->address, "%08X:%02X:%02X.0", out->domain, out->bus, out->device);
  return SUCCESS;
}

nvml_return nvmlDeviceGetIndex(nvml_device gpu, uint *out) {
  int index = index_of(gpu);
  *out = (uint)index;
  return index < 0 ? GPU_IS_LOST : condition(gpu);
}

#define ANSWERS_STRING(function, what) \
  nvml_return function(nvml_device gpu, char *out, uint size) { return gpu_string(gpu, what, out, size); }
ANSWERS_STRING(nvmlDeviceGetName, "name")
ANSWERS_STRING(nvmlDeviceGetSerial, "serial")
ANSWERS_STRING(nvmlDeviceGetUUID, "uuid")
ANSWERS_STRING(nvmlDeviceGetVbiosVersion, "vbios")
ANSWERS_STRING(nvmlDeviceGetBoardPartNumber, "board_part")
ANSWERS_STRING(nvmlDeviceGetInforomImageVersion, "inforom_image")
nvml_return nvmlDeviceGetGspFirmwareVersion(nvml_device gpu, char *out) { return gpu_string(gpu, "gsp", out, 64); }

nvml_return nvmlDeviceGetInforomVersion(nvml_device gpu, uint object, char *out, uint size) {
  static const char *const objects[] = {"inforom_oem", "inforom_ecc", "inforom_power"};
  return object < 3 ? gpu_string(gpu, objects[object], out, size) : INVALID_ARGUMENT;
}

nvml_return nvmlDeviceValidateInforom(nvml_device gpu) {
  uint valid = 0;
  nvml_return rc = gpu_uint(gpu, "inforom_valid", &valid);
  return rc || valid ? rc : CORRUPTED_INFOROM;
}

#define ANSWERS_UINT(function, what) \
  nvml_return function(nvml_device gpu, uint *out) { return gpu_uint(gpu, what, out); }
ANSWERS_UINT(nvmlDeviceGetCurrPcieLinkGeneration, "pcie_generation")
ANSWERS_UINT(nvmlDeviceGetMaxPcieLinkGeneration, "pcie_generation_max")
ANSWERS_UINT(nvmlDeviceGetCurrPcieLinkWidth, "pcie_width")
ANSWERS_UINT(nvmlDeviceGetMaxPcieLinkWidth, "pcie_width_max")
ANSWERS_UINT(nvmlDeviceGetPcieReplayCounter, "pcie_replays")
ANSWERS_UINT(nvmlDeviceGetPowerUsage, "power_mw")
ANSWERS_UINT(nvmlDeviceGetEnforcedPowerLimit, "power_limit_mw")
ANSWERS_UINT(nvmlDeviceGetPowerManagementLimit, "power_requested_mw")
ANSWERS_UINT(nvmlDeviceGetPowerManagementDefaultLimit, "power_default_mw")
ANSWERS_UINT(nvmlDeviceGetPersistenceMode, "persistence")
ANSWERS_UINT(nvmlDeviceGetComputeMode, "compute_mode")
ANSWERS_UINT(nvmlDeviceGetRetiredPagesPendingStatus, "retired_pending")

#define ANSWERS_PAIR(function, first, second) \
  nvml_return function(nvml_device gpu, uint *one, uint *other) { \
    nvml_return rc = gpu_uint(gpu, first, one); return rc ? rc : gpu_uint(gpu, second, other); }
ANSWERS_PAIR(nvmlDeviceGetPowerManagementLimitConstraints, "power_min_mw", "power_max_mw")
ANSWERS_PAIR(nvmlDeviceGetEccMode, "ecc_enabled", "ecc_pending")
ANSWERS_PAIR(nvmlDeviceGetMigMode, "mig_enabled", "mig_pending")

struct utilisation { uint gpu, memory; };
nvml_return nvmlDeviceGetUtilizationRates(nvml_device gpu, struct utilisation *out) {
  nvml_return rc = gpu_uint(gpu, "gpu_percent", &out->gpu);
  return rc ? rc : gpu_uint(gpu, "memory_percent", &out->memory);
}

/* A question with one more argument: which of several keys. */
#define ANSWERS_ONE_OF(function, ...) \
  nvml_return function(nvml_device gpu, uint which, uint *out) { \
    static const char *const keys[] = {__VA_ARGS__}; \
    return which < sizeof keys / sizeof *keys ? gpu_uint(gpu, keys[which], out) : INVALID_ARGUMENT; }
ANSWERS_ONE_OF(nvmlDeviceGetClockInfo, "sm_mhz", "sm_mhz", "memory_mhz")
ANSWERS_ONE_OF(nvmlDeviceGetMaxClockInfo, "sm_max_mhz", "sm_max_mhz", "memory_max_mhz")
ANSWERS_ONE_OF(nvmlDeviceGetApplicationsClock, "application_mhz", "application_mhz", "application_memory_mhz")
ANSWERS_ONE_OF(nvmlDeviceGetDefaultApplicationsClock, "application_default_mhz")
ANSWERS_ONE_OF(nvmlDeviceGetTemperature, "temperature_c")
ANSWERS_ONE_OF(nvmlDeviceGetTemperatureThreshold, "shutdown_c", "slowdown_c", "memory_max_c", "operating_max_c")

struct temperature { uint version, sensor; int celsius; };
nvml_return nvmlDeviceGetTemperatureV(nvml_device gpu, struct temperature *out) {
  return nvmlDeviceGetTemperature(gpu, out->sensor, (uint *)&out->celsius);
}
struct margin { uint version; int celsius; };
nvml_return nvmlDeviceGetMarginTemperature(nvml_device gpu, struct margin *out) {
  return gpu_uint(gpu, "margin_c", (uint *)&out->celsius);
}

nvml_return nvmlDeviceGetCurrentClocksEventReasons(nvml_device gpu, ulong64 *out) {
  return gpu_number(gpu, "throttle", out);
}
nvml_return nvmlDeviceGetCurrentClocksThrottleReasons(nvml_device gpu, ulong64 *out) {
  return gpu_number(gpu, "throttle", out);
}

#include "memory.h"
#include "nvlink.h"
#include "events.h"

/* A GPU's memory: errors by place, retired pages, remapped rows, size, and who uses it. */
static nvml_return ecc(nvml_device gpu, uint aggregate, const char *place_, uint uncorrected, ulong64 *out) {
  char what[64];
  snprintf(what, sizeof what, "ecc_%s_%s%s", aggregate ? "aggregate" : "volatile", place_,
           uncorrected ? "uncorrected" : "corrected");
  return gpu_number(gpu, what, out);
}
nvml_return nvmlDeviceGetTotalEccErrors(nvml_device gpu, uint uncorrected, uint aggregate, ulong64 *out) {
  return ecc(gpu, aggregate, "", uncorrected, out);
}
nvml_return nvmlDeviceGetMemoryErrorCounter(nvml_device gpu, uint uncorrected, uint aggregate, uint location,
                                            ulong64 *out) {
  return location == 2 || location == 7 ? ecc(gpu, aggregate, location == 7 ? "sram_" : "dram_", uncorrected, out)
                                        : NOT_SUPPORTED;
}

struct sram { uint version; ulong64 counts[11]; uint threshold_exceeded; };
nvml_return nvmlDeviceGetSramEccErrorStatus(nvml_device gpu, struct sram *out) {
  return gpu_uint(gpu, "sram_threshold_exceeded", &out->threshold_exceeded);
}

nvml_return nvmlDeviceGetRetiredPages(nvml_device gpu, uint cause, uint *count, ulong64 *addresses) {
  uint retired = 0, room = *count;
  nvml_return rc = gpu_uint(gpu, cause ? "retired_double_bit" : "retired_single_bit", &retired);
  if (rc) return rc;
  *count = retired;
  if (room < retired) return INSUFFICIENT_SIZE;
  for (uint page = 0; addresses && page < retired; page++) addresses[page] = 0x1000ULL * page;
  return SUCCESS;
}

nvml_return nvmlDeviceGetRemappedRows(nvml_device gpu, uint *correctable, uint *uncorrectable, uint *pending,
                                      uint *failed) {
  nvml_return rc = gpu_uint(gpu, "remap_correctable", correctable);
  if (!rc) rc = gpu_uint(gpu, "remap_uncorrectable", uncorrectable);
  if (!rc) rc = gpu_uint(gpu, "remap_pending", pending);
  return rc ? rc : gpu_uint(gpu, "remap_failed", failed);
}
nvml_return nvmlDeviceGetRowRemapperHistogram(nvml_device gpu, uint *banks) {
  static const char *const left[] = {"max", "high", "partial", "low", "none"};
  nvml_return rc = SUCCESS;
  for (int i = 0; !rc && i < 5; i++) {
    char what[64];
    snprintf(what, sizeof what, "remap_banks_%s", left[i]);
    rc = gpu_uint(gpu, what, &banks[i]);
  }
  return rc;
}

struct repair { uint version, channel, tpc; };
nvml_return nvmlDeviceGetRepairStatus(nvml_device gpu, struct repair *out) {
  nvml_return rc = gpu_uint(gpu, "repair_channel", &out->channel);
  return rc ? rc : gpu_uint(gpu, "repair_tpc", &out->tpc);
}

struct memory { ulong64 total, free, used; };
nvml_return nvmlDeviceGetMemoryInfo(nvml_device gpu, struct memory *out) {
  nvml_return rc = gpu_number(gpu, "memory_total_bytes", &out->total);
  if (!rc) rc = gpu_number(gpu, "memory_used_bytes", &out->used);
  out->free = out->total - out->used;
  return rc;
}

struct process { uint pid; ulong64 memory; uint gpu_instance, compute_instance; };

nvml_return nvmlDeviceGetComputeRunningProcesses_v3(nvml_device gpu, uint *count, struct process *out) {
  char listed[ANSWER], *at = listed, *end;
  uint room = *count, found = 0;
  nvml_return rc = gpu_string(gpu, "pids", listed, sizeof listed);
  if (rc) return rc;
  for (long pid; pid = strtol(at, &end, 10), end != at; at = end, found++)
    if (found < room) out[found] = (struct process){(uint)pid, 1 << 20, ~0u, ~0u};
  *count = found;
  return found > room ? INSUFFICIENT_SIZE : SUCCESS;
}
nvml_return nvmlDeviceGetGraphicsRunningProcesses_v3(nvml_device gpu, uint *count, struct process *out) {
  (void)out;
  *count = 0;
  return condition(gpu);
}

/* NVLink, its fabric, and NVML's numbered fields, most of which are of NVLink. */
nvml_return nvmlDeviceGetNvLinkState(nvml_device gpu, uint link, uint *out) {
  uint links = 0, up = 0;
  nvml_return rc = gpu_uint(gpu, "nvlink_links", &links);
  if (!rc) rc = gpu_uint(gpu, "nvlink_up", &up);
  if (rc) return rc;
  if (link >= links) return INVALID_ARGUMENT;
  *out = link < up;
  return SUCCESS;
}

struct fabric { unsigned char cluster[16]; nvml_return status; uint clique, state, health; unsigned char summary; };
struct fabric_v { uint version; struct fabric is; };
enum { FABRIC_V2 = 0x2000024, FABRIC_V3 = 0x3000028 };

static nvml_return fabric(nvml_device gpu, struct fabric *out, int version) {
  char uuid[64];
  uint status = 0, summary = 0;
  nvml_return rc = gpu_uint(gpu, "fabric_state", &out->state);
  if (!rc) rc = gpu_uint(gpu, "fabric_status", &status);
  if (!rc) rc = gpu_uint(gpu, "fabric_clique", &out->clique);
  if (!rc) rc = gpu_string(gpu, "fabric_cluster", uuid, sizeof uuid);
  if (rc) return rc;
  out->status = (nvml_return)status;
  const char *at = uuid;
  for (int byte = 0; byte < 16; at += 2) {
    if (*at == '-') at++;
    uint value = 0;
    if (sscanf(at, "%2x", &value) != 1) return NOT_SUPPORTED;
    out->cluster[byte++] = (unsigned char)value;
  }
  if (version >= 2) gpu_uint(gpu, "fabric_health", &out->health);
  if (version >= 3 && !gpu_uint(gpu, "fabric_summary", &summary)) out->summary = (unsigned char)summary;
  return SUCCESS;
}
nvml_return nvmlDeviceGetGpuFabricInfo(nvml_device gpu, struct fabric *out) { return fabric(gpu, out, 1); }
nvml_return nvmlDeviceGetGpuFabricInfoV(nvml_device gpu, struct fabric_v *out) {
  if (out->version != FABRIC_V2 && out->version != FABRIC_V3) return VERSION_MISMATCH;
  return fabric(gpu, &out->is, out->version == FABRIC_V3 ? 3 : 2);
}

struct field_value {
  uint field, scope;
  long long timestamp, latency_us;
  uint type;
  nvml_return rc;
  union { double d; uint u; unsigned long ul; ulong64 ull; long long ll; } value;
};

/* By field id: the key, and by which generations of NVLink it is known (0: it is none of NVLink's). */
static const struct { uint field; const char *key; uint from, to; } fields[] = {
  {74, "throttled_power_cap_ns", 0, 0}, {75, "throttled_thermal_ns", 0, 0}, {82, "memory_temperature_c", 0, 0}, {161, "replays", 4, 4},
  {162, "recoveries", 4, 4}, {163, "crc_errors", 4, 4}, {164, "speed_mb_s", 1, 9}, {215, "recoveries", 5, 9},
  {219, "crc_errors", 5, 9}, {230, "recovery_action", 0, 0}, {269, "throttled_software_thermal_ns", 0, 0},
  {270, "throttled_hardware_thermal_ns", 0, 0}, {271, "throttled_power_brake_ns", 0, 0},
};

static nvml_return link_field(nvml_device gpu, uint link, const char *what, ulong64 *out) {
  char key[KEY];
  uint links = 0;
  nvml_return rc = gpu_uint(gpu, "nvlink_links", &links);
  if (rc || link >= links) return rc ? rc : INVALID_ARGUMENT;
  snprintf(key, sizeof key, "nvlink_%s", what);
  if (!strcmp(what, "speed_mb_s")) return gpu_number(gpu, key, out);
  snprintf(key, sizeof key, "nvlink%u_%s", link, what);
  if (gpu_number(gpu, key, out)) *out = 0; /* only links with errors have keys */
  return SUCCESS;
}

nvml_return nvmlDeviceGetNvLinkErrorCounter(nvml_device gpu, uint link, uint counter, ulong64 *out) {
  static const char *const counters[] = {"replays", "recoveries", "crc_errors"};
  uint generation = 4;
  gpu_uint(gpu, "nvlink_generation", &generation);
  return generation > 4 || counter > 2 ? NOT_SUPPORTED : link_field(gpu, link, counters[counter], out);
}

static nvml_return field(nvml_device gpu, struct field_value *asked) {
  uint generation = 4;
  gpu_uint(gpu, "nvlink_generation", &generation);
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
    if (fields[i].field != asked->field) continue;
    if (!fields[i].from) return gpu_number(gpu, fields[i].key, &asked->value.ull);
    if (generation < fields[i].from || generation > fields[i].to) return NOT_SUPPORTED;
    return link_field(gpu, asked->scope, fields[i].key, &asked->value.ull);
  }
  return INVALID_ARGUMENT;
}

nvml_return nvmlDeviceGetFieldValues(nvml_device gpu, int count, struct field_value *asked) {
  nvml_return rc = condition(gpu);
  unchanging = 1;
  for (int i = 0; !rc && i < count; i++) {
    asked[i].type = 3; /* NVML_VALUE_TYPE_UNSIGNED_LONG_LONG */
    asked[i].rc = field(gpu, &asked[i]);
  }
  unchanging = 0;
  return rc;
}

/* Events: every XID comes once to each set that was registered before. */
enum { XID_EVENT = 8, POLL_MS = 10 };
struct event { nvml_device gpu; ulong64 type, data; uint gpu_instance, compute_instance; };
typedef struct event_set { ulong64 watched; uint seen[MAX_DEVICES]; } *nvml_events;

/* Returns how many XIDs the GPU has had, and stores the one after the first `seen`. */
static uint xids(int slot, uint seen, ulong64 *xid) {
  char key[KEY], listed[ANSWER], *at = listed, *end;
  uint count = 0;
  snprintf(key, sizeof key, "g%d.xids", slot);
  if (find(key, listed) != '"') return 0;
  for (ulong64 one; one = strtoull(at, &end, 10), end != at; at = end, count++)
    if (count == seen) *xid = one;
  return count;
}

nvml_return nvmlEventSetCreate(nvml_events *out) { *out = calloc(1, sizeof **out); return *out ? SUCCESS : 20; }
nvml_return nvmlEventSetFree(nvml_events set) { free(set); return SUCCESS; }
nvml_return nvmlDeviceGetSupportedEventTypes(nvml_device gpu, ulong64 *out) { *out = XID_EVENT; return condition(gpu); }

nvml_return nvmlDeviceRegisterEvents(nvml_device gpu, ulong64 types, nvml_events set) {
  ulong64 ignored;
  nvml_return rc = condition(gpu);
  if (rc || !(types & XID_EVENT)) return rc;
  set->watched |= 1ULL << gpu->slot;
  set->seen[gpu->slot] = xids(gpu->slot, 0, &ignored);
  return SUCCESS;
}

static int next_event(nvml_events set, struct event *out) {
  for (int slot = 0; slot < MAX_DEVICES; slot++) {
    ulong64 xid = 0;
    if (!(set->watched >> slot & 1) || xids(slot, set->seen[slot], &xid) <= set->seen[slot]) continue;
    set->seen[slot]++;
    *out = (struct event){&devices[slot], XID_EVENT, xid, ~0u, ~0u};
    return 1;
  }
  return 0;
}

nvml_return nvmlEventSetWait_v2(nvml_events set, struct event *out, uint timeout_ms) {
  struct timespec pause = {0, POLL_MS * 1000000L};
  for (uint waited = 0;; waited += POLL_MS) {
    if (next_event(set, out)) return SUCCESS;
    if (waited >= timeout_ms) return TIMEOUT;
    nanosleep(&pause, NULL);
  }
}

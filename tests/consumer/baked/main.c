/* baked LIBRARY ARCHIVE|none MODEL.onnx RESULTS [TABLE [MS]]: a policy acts, its network runs as a model
 * with state, and a pet learns some steps through the library, with kernels from the archive in the variants
 * of the tuning table. Their exact results
 * go to RESULTS. With MS, measures the table for MS milliseconds and writes it. Exit status 3: the library
 * refused; its message is on stdout. Exit status 1: a fault of this program, or a validation message. */

#ifdef _WIN32
#include <windows.h>
#else
#include <dlfcn.h>
#endif
#include <imprint/imprint_models.h>
#include <imprint/imprint_tools.h>
#include <stdio.h>
#include <stdlib.h>

enum { kFrames = 90, kPolicyAgents = 4, kObservations = 28, kGoals = 6, kActions = 10, kMostFloats = 256 };

static int errors_logged = 0;

static void note(void* user, imp_log_level level, const char* message) {
  (void)user;
  if (level >= IMP_LOG_INFO) fprintf(stderr, "%s\n", message);
  if (level >= IMP_LOG_ERROR) ++errors_logged;
}

static const imp_api* api;

static void check(imp_result result, const char* call) {
  if (result >= IMP_OK) return;
  printf("%s: %s: %s\n", call, api->result_name(result), api->last_error());
  exit(3);
}
#define CHECK(call) check(api->call, #call)

/* In [0, 1), the same in every process: Donald Knuth's MMIX. */
static float next_number(void) {
  static uint64_t state = 1;
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (float)(state >> 40) / 16777216.0f;
}

static void* read_all(const char* path, size_t* size) {
  FILE* file = fopen(path, "rb");
  if (!file) return NULL;
  fseek(file, 0, SEEK_END);
  *size = (size_t)ftell(file);
  rewind(file);
  void* bytes = malloc(*size);
  if (bytes && fread(bytes, 1, *size, file) != *size) *size = 0;
  fclose(file);
  return bytes;
}

static void write_table(imp_context context, const char* path) {
  size_t size = 0;
  CHECK(tools->tuning_get(context, NULL, &size));
  char* text = malloc(size);
  CHECK(tools->tuning_get(context, text, &size));
  FILE* file = fopen(path, "wb");
  if (!file || fwrite(text, 1, size, file) != size) printf("cannot write %s\n", path), exit(1);
  fclose(file);
  free(text);
}

static void observe(imp_agent agent, uint32_t count) {
  float observation[kMostFloats];
  for (uint32_t i = 0; i < count; ++i) observation[i] = 2 * next_number() - 1;
  CHECK(agent_observe(agent, observation, count));
}

static void write_answer(imp_agent agent, FILE* results) {
  imp_action action = imp_action_init();
  const imp_result result = api->agent_act(agent, &action);
  if (result == IMP_ERROR_NOT_FOUND) return;
  check(result, "agent_act");
  if (result != IMP_OK) return;
  fwrite(action.branches, sizeof action.branches[0], action.branch_count, results);
  fwrite(action.values, sizeof action.values[0], action.value_count, results);
}

/* As model.json has it. */
static imp_model create_model(imp_context context, const char* path, imp_model_value* seen,
                              imp_model_value* done) {
  const imp_model_extent extent = {"batch_size", 5};
  const imp_model_state state = {"state_ins", "state_outs"};
  imp_model_desc desc = imp_model_desc_init();
  desc.path = path;
  desc.extents = &extent;
  desc.extent_count = 1;
  desc.states = &state;
  desc.state_count = 1;
  imp_model model = {0};
  CHECK(models->model_create(context, &desc, &model));
  CHECK(models->model_get_input(model, 0, seen));
  CHECK(models->model_get_output(model, 0, done));
  if (seen->size > kMostFloats * sizeof(float) || done->size > kMostFloats * sizeof(float))
    fprintf(stderr, "the model's arrays are too long\n"), exit(1);
  return model;
}

static void run_model(imp_model model, const imp_model_value* seen, const imp_model_value* done,
                      uint32_t frame, FILE* results) {
  float values[kMostFloats];
  for (int i = 0; i < kMostFloats; ++i) values[i] = 2 * next_number() - 1;
  const imp_model_input input = {seen->name, values, (size_t)seen->size};
  const imp_model_output output = {done->name, values, (size_t)done->size};
  static uint64_t run = 0;
  if (frame % 7 == 1) CHECK(models->model_run(model, &input, 1, &run));
  if (frame % 7 != 5) return;
  const imp_result read = api->models->model_read(model, run, &output, 1);
  check(read, "model_read");
  if (read == IMP_OK) fwrite(values, 1, output.size, results);
}

static void live(imp_context context, imp_brain brain, imp_agent pet, const imp_agent* actors,
                 uint32_t observations, imp_model model, const imp_model_value* seen,
                 const imp_model_value* done, FILE* results) {
  uint64_t snapshot = 0;
  for (uint32_t frame = 1; frame <= kFrames; ++frame) {
    imp_frame_info info = imp_frame_info_init();
    info.frame = frame;
    info.time_s = frame / 60.0;
    CHECK(frame_begin(context, &info));
    if (frame % 6 == 1) CHECK(agent_set_goal(pet, frame / 6 % kGoals));
    if (frame % 6 == 1) observe(pet, kObservations);
    for (uint32_t i = 0; i < kPolicyAgents && frame % 10 == 1; ++i) observe(actors[i], observations);
    if (frame % 6 == 4) write_answer(pet, results);
    for (uint32_t i = 0; i < kPolicyAgents && frame % 10 == 4; ++i) write_answer(actors[i], results);
    run_model(model, seen, done, frame, results);
    if (frame % 6 == 5) CHECK(agent_reward(pet, next_number() < 0.5f ? -1.0f : 1.0f));
    if (frame == 40) CHECK(brain_snapshot(brain, &snapshot));
    if (frame == 70) CHECK(brain_restore(brain, snapshot));
    CHECK(frame_submit(context, UINT32_MAX));
    CHECK(frame_end(context));
    CHECK(context_drain(context, 60000));
  }
  uint64_t hash[2];
  CHECK(tools->brain_hash(brain, &hash[0], &hash[1]));
  fwrite(hash, sizeof hash, 1, results);
}

static imp_get_api_function load(const char* path) {
  imp_get_api_function get_api = NULL;
#ifdef _WIN32
  HMODULE library = LoadLibraryA(path);
  if (library) *(FARPROC*)&get_api = GetProcAddress(library, "imp_get_api");
#else
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library)
    *(void**)&get_api = dlsym(library, "imp_get_api");
  else
    fprintf(stderr, "%s\n", dlerror());
#endif
  return get_api;
}

int main(int argc, char** argv) {
  if (argc < 5 || argc > 7)
    return fprintf(stderr, "baked LIBRARY ARCHIVE|none MODEL.onnx RESULTS [TABLE [MS]]\n"), 1;
  const imp_get_api_function get_api = load(argv[1]);
  if (!get_api || get_api(IMP_ABI_VERSION, &api) < 0)
    return fprintf(stderr, "%s is not Imprint\n", argv[1]), 1;

  imp_standalone_info device = imp_standalone_info_init();
  device.device = getenv("IMPRINT_TEST_DEVICE");
#ifndef _WIN32
  device.validation = 1; /* Wine passes no layers on */
#endif
  imp_host host = imp_host_init();
  host.log = note;
  if (strcmp(argv[2], "none") != 0) host.kernel_archive_path = argv[2];
  imp_limits limits = imp_limits_init();
  limits.tuning_ms = argc > 6 ? (uint32_t)atoi(argv[6]) : 0;
  imp_context context = {0};
  CHECK(tools->context_create_standalone(&device, &host, &limits, &context));
  if (argc == 6) {
    size_t size = 0;
    char* table = read_all(argv[5], &size);
    CHECK(tools->tuning_set(context, table, size));
    free(table);
  }

  imp_policy_desc policy = imp_policy_desc_init();
  policy.data = read_all(argv[3], &policy.size);
  policy.agent_capacity = kPolicyAgents;
  imp_brain actor = {0}, brain = {0};
  CHECK(brain_create_from_onnx(context, &policy, &actor));
  imp_brain_info actor_info = imp_brain_info_init();
  CHECK(brain_get_info(actor, &actor_info));
  if (actor_info.observation_count > kMostFloats) return fprintf(stderr, "the policy observes too much\n"), 1;

  /* As pet.json has it. */
  float scale[kObservations];
  for (int i = 0; i < kObservations; ++i) scale[i] = 0.5f;
  const uint32_t actions = kActions;
  imp_brain_desc desc = imp_brain_desc_init();
  desc.name = "pet";
  desc.observation_count = kObservations;
  desc.observation_scale = scale;
  desc.goal_count = kGoals;
  desc.branch_count = 1;
  desc.branch_sizes = &actions;
  desc.learner = IMP_LEARNER_FEEDBACK;
  desc.seed = 7;
  CHECK(brain_create(context, &desc, &brain));
  imp_agent pet = {0}, actors[kPolicyAgents];
  CHECK(agent_create(brain, 0, &pet));
  for (uint32_t i = 0; i < kPolicyAgents; ++i) CHECK(agent_create(actor, 0, &actors[i]));
  imp_model_value seen = imp_model_value_init(), done = imp_model_value_init();
  const imp_model model = create_model(context, argv[3], &seen, &done);
  CHECK(context_warmup(context, NULL, NULL));
  if (argc > 6) write_table(context, argv[5]);

  FILE* results = fopen(argv[4], "wb");
  if (!results) return fprintf(stderr, "cannot write %s\n", argv[4]), 1;
  live(context, brain, pet, actors, actor_info.observation_count, model, &seen, &done, results);
  fclose(results);

  imp_brain_stats stats = imp_brain_stats_init();
  CHECK(tools->brain_get_stats(brain, &stats));
  imp_context_stats figures = imp_context_stats_init();
  CHECK(tools->context_get_stats(context, &figures));
  CHECK(context_destroy(context));
  free((void*)policy.data);
  printf("%u minibatches, %u frame compiles\n", (unsigned)stats.minibatches,
         (unsigned)figures.frame_compiles);
  return stats.minibatches == 0 || figures.frame_compiles != 0 || errors_logged != 0;
}

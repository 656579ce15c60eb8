// The program `imprint` as a user runs it: files, messages and exit status.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <sstream>

#include "compute/base/sha256.h"
#include "compute/model/files/file.h"
#include "tests/unit/model_data.h"
#include "tests/unit/model_onnx_builder.h"

namespace imprint {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

struct Finished {
  int status = -1;
  std::string text;  // stdout and stderr
};

Finished run(const std::string& arguments) {
  const char* device = std::getenv("IMPRINT_TEST_DEVICE");
  const bool computes =
      arguments.starts_with("run ") || arguments.starts_with("explain ") || arguments.starts_with("tune ");
  const std::string chosen = device && computes && arguments.find("--device") == std::string::npos
                                 ? " --device '" + std::string(device) + "'"
                                 : "";
  FILE* pipe =
      popen((std::string("'") + IMPRINT_COMMAND_LINE + "' " + arguments + chosen + " 2>&1").c_str(), "r");
  Finished finished;
  if (!pipe) return finished;
  char buffer[4096];
  for (std::size_t count; (count = std::fread(buffer, 1, sizeof(buffer), pipe)) > 0;)
    finished.text.append(buffer, count);
  const int status = pclose(pipe);
  finished.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return finished;
}

class CommandLine : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        std::filesystem::temp_directory_path() / ("imprint-cli-" + std::to_string(std::random_device{}()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::filesystem::path folder_;
};

TEST_F(CommandLine, RunsAModel) {
  const std::string model = test::model_path("godot/BallChase");
  const Finished finished =
      run("run " + model + ".onnx --input " + model + ".ref.safetensors --output " + path("out.safetensors"));
  ASSERT_EQ(finished.status, 0) << finished.text;
  const auto written = safetensors::load(path("out.safetensors"));
  ASSERT_TRUE(written.ok()) << written.error().message;
  const test::Reference reference = test::must_load_reference("godot/BallChase.ref");
  ASSERT_EQ(written->arrays.size(), reference.outputs.size());
  for (const auto& [name, expected] : reference.outputs) {
    const auto array = written->find(name);
    ASSERT_TRUE(array.ok()) << array.error().message;
    EXPECT_EQ((*array)->shape, expected.shape);
    const std::vector<float> values = (*array)->floats();
    test::expect_near<float>(values, expected.floats(), 1e-5, name);
  }
}

// 6,792 weights, 32 observations and 8 logits: 27,328 bytes at 1 TB/s after a launch of 2 us.
TEST_F(CommandLine, ExplainsAProgram) {
  const Finished finished =
      run("explain policy/b1 --launch-us 2 --gb-per-s 1000 --tflop-per-s 10 --glsl --json " +
          path("figures.json"));
  ASSERT_EQ(finished.status, 0) << finished.text;
  EXPECT_THAT(finished.text, HasSubstr("policy/32-64-64-8/f32/b1 on "));
  EXPECT_THAT(finished.text, HasSubstr(": 1 dispatch of 1 kernel, "));
  EXPECT_THAT(finished.text, HasSubstr("floor of one run: 2.03 us"));
  EXPECT_THAT(finished.text, HasSubstr("void main()"));
  std::ifstream file(path("figures.json"));
  const std::string json((std::istreambuf_iterator<char>(file)), {});
  EXPECT_THAT(json, HasSubstr("\"bytes\": 27328,"));
  const Finished unknown = run("explain none --launch-us 2 --gb-per-s 1 --tflop-per-s 1");
  EXPECT_EQ(unknown.status, 1);
  EXPECT_THAT(unknown.text,
              HasSubstr("program: found 'none', expected an ONNX file (MODEL.onnx) or a program of "
                        "suites policy, learn, learners, pet, kennel, ops, nets, worlds, extents, train."));
}

// Without copies there are no barriers for them.
TEST_F(CommandLine, MeasuresAModelInMemoryOfTheDevice) {
  const auto barriers = [&](const std::string& options) {
    const Finished finished =
        run("bench " + test::model_path("godot/BallChase") +
            ".onnx --warmup 1 --repeats 2 --seconds 0.01 --json " + path("row.json") + options);
    EXPECT_EQ(finished.status, 0) << finished.text;
    std::ifstream file(path("row.json"));
    const std::string json((std::istreambuf_iterator<char>(file)), {}), key = "\"barriers\": ";
    const std::size_t found = json.find(key);
    return found == std::string::npos ? -1 : std::atoi(json.c_str() + found + key.size());
  };
  const int copied = barriers(" --copied"), kept = barriers("");
  EXPECT_GE(kept, 0);
  EXPECT_LT(kept, copied);
}

// Rows of bench --list that are no programs, or that the CPU cannot run.
TEST_F(CommandLine, RefusesProgramsThatItCannotExplain) {
  for (const char* row : {"floor/empty", "floor", "frame/pet/tick", "frame"})
    for (const char* command : {"explain ", "tune --table none.json --workload "}) {
      const Finished finished = run(command + std::string(row));
      EXPECT_EQ(finished.status, 1) << row;
      EXPECT_THAT(finished.text,
                  HasSubstr("found '" + std::string(row) + "', a benchmark without a program of its own"))
          << command;
      EXPECT_THAT(finished.text, HasSubstr("expected a program of suites policy, learn, learners, pet, "
                                           "kennel, ops, nets, worlds, extents, train."))
          << command;
      EXPECT_EQ(std::ranges::count(finished.text, '\n'), 1) << finished.text;
    }
  for (const char* row : {"gelu", "worlds/cartpole/n8/to-the-end", "ops/matmul"}) {
    const Finished finished = run("explain --device cpu " + std::string(row));
    EXPECT_EQ(finished.status, 1) << row;
    EXPECT_THAT(
        finished.text,
        HasSubstr(
            "found '" + std::string(row) +
            "', which needs a Vulkan device, expected a program of suites policy, learn, learners, pet, "
            "kennel, nets, extents, train."));
  }
}

TEST_F(CommandLine, ListsTheBenchmarksThatWouldRun) {
  const std::string all = run("bench --list").text, processor = run("bench --list --device cpu").text;
  for (const char* everywhere :
       {"policy/32-64-64-8/f32/b1\n", "learn/ppo/h64/f32/b256\n", "learners/double-dqn/h64/b64\n",
        "pet/b32\n", "kennel/pet/n64/b32\n", "frame/pet/learning-on\n"}) {
    EXPECT_THAT(all, HasSubstr(everywhere));
    EXPECT_THAT(processor, HasSubstr(everywhere));
  }
  for (const char* device_alone : {"floor/", "ops/", "worlds/"}) {
    EXPECT_THAT(all, HasSubstr(device_alone));
    EXPECT_THAT(processor, Not(HasSubstr(device_alone)));
    const Finished refused =
        run("bench --list --device cpu --suite " + std::string(device_alone, std::strlen(device_alone) - 1));
    EXPECT_EQ(refused.status, 1);
    EXPECT_THAT(refused.text, HasSubstr("measures a Vulkan device, and --device cpu is none"));
  }
  const Finished nowhere = run("bench --list --device 99");
  EXPECT_EQ(nowhere.status, 1);
  EXPECT_THAT(nowhere.text, HasSubstr("imprint bench: "));
  EXPECT_EQ(std::ranges::count(nowhere.text, '\n'), 1) << nowhere.text;
}

TEST_F(CommandLine, HelpFitsATerminal) {
  for (const char* command :
       {"", "run ", "inspect ", "devices ", "bake ", "bench ", "explain ", "tune ", "train "}) {
    const Finished help = run(std::string(command) + "--help");
    EXPECT_EQ(help.status, 0);
    std::istringstream lines(help.text);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << command << line;
    EXPECT_THAT(help.text, HasSubstr(std::string("Usage: imprint ") + command));
  }
}

TEST_F(CommandLine, TunesAndSaysWhy) {
  const std::string table = path("tuning.json"), model = test::model_path("godot/BallChase.onnx"),
                    floors = " --launch-us 2 --gb-per-s 1 --tflop-per-s 1";
  EXPECT_THAT(run("explain policy/b64" + floors).text, HasSubstr("by the cost model; else "));
  const Finished tuned = run("tune " + model + " --workload policy/b64 --runs 1 --table " + table);
  ASSERT_EQ(tuned.status, 0) << tuned.text;
  EXPECT_THAT(tuned.text, HasSubstr("us, by the cost model"));
  EXPECT_THAT(tuned.text, HasSubstr(" %\n"));
  EXPECT_THAT(run("tune --workload policy/b64 --table " + table).text,
              HasSubstr("0 kernels new in the table"));
  const Finished explained = run("explain policy/b64 --tuning " + table + floors);
  EXPECT_THAT(explained.text, HasSubstr("by the table; else "));
  EXPECT_THAT(explained.text, Not(HasSubstr("by the cost model")));

  std::filesystem::resize_file(table, std::filesystem::file_size(table) / 2);
  const Finished damaged = run("explain policy/b64 --tuning " + table + floors);
  EXPECT_EQ(damaged.status, 1);
  EXPECT_THAT(damaged.text, HasSubstr("tuning table: found no JSON at byte "));
  EXPECT_EQ(run("tune --workload policy/b64 --table " + table).status, 1)
      << "what others measured is not overwritten";
  EXPECT_THAT(run("tune --table " + path("other.json")).text, HasSubstr("found nothing to measure"));
}

TEST_F(CommandLine, TrainsAnExampleAndGoesOn) {
  const std::string folder = path("digits"), start = "train mnist-mlp --small --folder " + folder;
  EXPECT_THAT(run("train --list").text, HasSubstr("char-gpt "));
  const Finished first = run(start + " --epochs 2");
  ASSERT_EQ(first.status, 0) << first.text;
  EXPECT_THAT(first.text, HasSubstr("epoch 2/2  training loss "));
  EXPECT_THAT(first.text, HasSubstr("digits that a generator draws"));
  for (const char* file :
       {"report.html", "curves.png", "curves.csv", "curves.jsonl", "events.out.tfevents.imprint"})
    EXPECT_TRUE(std::filesystem::exists(folder + "/" + file)) << file;
  const Finished rest = run(start + " --epochs 3 --resume");
  ASSERT_EQ(rest.status, 0) << rest.text;
  EXPECT_THAT(rest.text, HasSubstr("epoch 3/3"));
  EXPECT_THAT(rest.text, Not(HasSubstr("epoch 2/3")));
  const std::string untrained = path("untrained");
  const Finished none = run("train mnist-mlp --small --steps 0 --folder " + untrained);
  ASSERT_EQ(none.status, 0) << none.text;
  EXPECT_THAT(none.text, Not(HasSubstr("epoch 1/")));
  EXPECT_TRUE(std::filesystem::exists(untrained + "/last.safetensors"));
  EXPECT_FALSE(std::filesystem::exists(untrained + "/report.html"));
  const Finished some = run("train mnist-mlp --small --steps 3 --resume --folder " + untrained);
  ASSERT_EQ(some.status, 0) << some.text;
  EXPECT_THAT(some.text, HasSubstr("epoch 1/1  training loss "));
  EXPECT_THAT(run("train gan --small --steps 3").text, HasSubstr("gan: found epochs or steps"));
  const Finished unknown = run("train nothing");
  EXPECT_EQ(unknown.status, 1);
  EXPECT_THAT(unknown.text, HasSubstr("EXAMPLE: found 'nothing', expected one of mnist-mlp, "));
  EXPECT_THAT(run("train mnist-mlp --resume").text, HasSubstr("--resume: found no --folder"));
  EXPECT_EQ(run(start + " --data " + path("none")).status, 1);
}

TEST_F(CommandLine, NamesTheFault) {
  const std::string model = test::model_path("godot/BallChase.onnx"),
                    other = test::model_path("small/sine.ref.safetensors");
  const Finished missing = run("run none.onnx --input " + other + " --output " + path("o"));
  EXPECT_EQ(missing.status, 1);
  EXPECT_THAT(missing.text, HasSubstr("imprint run: cannot read 'none.onnx'"));
  const Finished wrong = run("run " + model + " --input " + other + " --output " + path("o"));
  EXPECT_EQ(wrong.status, 1);
  EXPECT_THAT(wrong.text, HasSubstr("lacks input 'obs'"));
  const Finished foreign = run("run " + other + " --input " + other + " --output " + path("o"));
  EXPECT_EQ(foreign.status, 1);
  EXPECT_THAT(foreign.text, HasSubstr("onnx: "));
  EXPECT_FALSE(std::filesystem::exists(path("o")));
  EXPECT_EQ(run("run " + model + " --input " + other + " --output " + path("o") + " --device no-such-device")
                .status,
            1);
  for (const char* target : {"/dev/null", "/dev/full"}) {
    const Finished device = run("run " + model + " --input " + other + " --output " + target);
    EXPECT_EQ(device.status, 1);
    EXPECT_THAT(device.text, HasSubstr("no regular file"));
    EXPECT_TRUE(std::filesystem::is_character_file(target));
  }
  const Finished floor = run("bench --suite floor --device CPU");
  EXPECT_EQ(floor.status, 1);
  EXPECT_THAT(floor.text, HasSubstr("suite floor measures a Vulkan device"));
  EXPECT_THAT(run("explain policy/b1 --device CPU").text, HasSubstr(" on CPU"));
  const Finished nowhere = run("run none.onnx --input " + other + " --output " + path("no/folder/o"));
  EXPECT_EQ(nowhere.status, 1);
  EXPECT_THAT(nowhere.text, HasSubstr("there is no folder"));
}

TEST_F(CommandLine, UsageErrorsHaveAStatusOfTheirOwn) {
  const struct {
    const char* arguments;
    const char* complaint;
  } wrong[] = {
      {"", "imprint: command: found none, expected one of run, inspect, devices"},
      {"frobnicate", "imprint: command: found 'frobnicate', expected one of run, inspect, devices"},
      {"frobnicate inspect a.onnx", "imprint: command: found 'frobnicate'"},
      {"--bad", "imprint: there is no option '--bad'. See imprint --help."},
      {"inspect", "imprint inspect: model is required. See imprint inspect --help."},
      {"inspect --bad", "imprint inspect: there is no option '--bad'"},
      {"inspect a.onnx --bad=3", "imprint inspect: there is no option '--bad=3'"},
      {"inspect a.onnx b.onnx", "imprint inspect: found 'b.onnx', expected no further argument"},
      {"devices 0", "imprint devices: found '0', expected no further argument"},
      {"devices -x", "imprint devices: there is no option '-x'"},
      {"run", "imprint run: model is required"},
      {"run a.onnx --input", "imprint run: --input"},
      {"run a.onnx --input a --ouput b", "imprint run: there is no option '--ouput'"},
      {"run a.onnx --repeat 0", "imprint run: --repeat"},
  };
  for (const auto& [arguments, complaint] : wrong) {
    const Finished finished = run(arguments);
    EXPECT_EQ(finished.status, 2) << arguments;
    EXPECT_THAT(finished.text, HasSubstr(complaint)) << arguments;
    EXPECT_EQ(std::ranges::count(finished.text, '\n'), 1) << arguments << ": " << finished.text;
  }
  EXPECT_EQ(run("--help").status, 0);
  EXPECT_EQ(run("run --help").status, 0);
  const Finished version = run("--version");
  EXPECT_EQ(version.status, 0);
  EXPECT_TRUE(version.text.starts_with("imprint "));
}

TEST_F(CommandLine, InspectsBodiesAndLoops) {
  using test::OnnxBuilder;
  OnnxBuilder body, builder;
  body.input("sum", {"2"}).input("row", {"2"}).node("Add", {"sum", "row"}, {"next"});
  body.node("Identity", {"next"}, {"out"}).output("next").output("out");
  builder.input("first", {"2"}).input("rows", {"5", "2"});
  builder.node("Scan", {"first", "rows"}, {"last", "all"},
               {OnnxBuilder::number("num_scan_inputs", 1), OnnxBuilder::body("body", body)}, "sums");
  builder.output("last").output("all");
  ASSERT_TRUE(write_file_atomic(path("scan.onnx"), builder.bytes()).ok());
  const Finished text = run("inspect " + path("scan.onnx"));
  EXPECT_EQ(text.status, 0) << text.text;
  EXPECT_THAT(text.text, HasSubstr("bodies\n  Scan 'sums', body: 2 nodes\n"));
  EXPECT_THAT(text.text, ContainsRegex("loop Scan 'sums': 5 turns of [0-9]+ dispatch"));
  EXPECT_THAT(text.text, HasSubstr(" from turn to turn\n"));
  const Finished json = run("inspect --json " + path("scan.onnx"));
  EXPECT_THAT(json.text, HasSubstr("\"turns\": 5"));
  EXPECT_THAT(json.text, HasSubstr("\"path\": \"Scan 'sums', body\""));
}

TEST_F(CommandLine, InspectsAsTextAndJson) {
  const std::string model = test::model_path("godot/ScoreTheGoal.onnx");
  const Finished text = run("inspect " + model);
  EXPECT_EQ(text.status, 0);
  EXPECT_THAT(text.text, HasSubstr("everything in it is supported"));
  const Finished json = run("inspect --json " + model);
  EXPECT_EQ(json.status, 0);
  EXPECT_THAT(json.text, HasSubstr("\"supported\": true"));
  const Finished damaged = run("inspect " + test::model_path("README.md"));
  EXPECT_EQ(damaged.status, 1);
  EXPECT_THAT(damaged.text, HasSubstr("not an ONNX file"));
  EXPECT_THAT(damaged.text, Not(HasSubstr("exception")));
  EXPECT_THAT(run("inspect none.onnx").text,
              HasSubstr("imprint inspect: cannot read 'none.onnx': there is no such file"));
  EXPECT_THAT(run("inspect " + folder_.string()).text, HasSubstr("it is a folder"));
}

TEST_F(CommandLine, BakesKernelsAndRunsFromThem) {
  const std::string model = test::model_path("godot/BallChase"),
                    run_it = "run " + model + ".onnx --input " + model + ".ref.safetensors";
  const Finished baked = run("bake --model " + model + ".onnx --batch 1,5 --output " + path("kernels"));
  ASSERT_EQ(baked.status, 0) << baked.text;
  EXPECT_THAT(baked.text, HasSubstr("BallChase.onnx, batch 5: "));
  EXPECT_THAT(baked.text, HasSubstr(" bytes, for desktop, baseline"));
  const auto archive = read_file(path("kernels"));
  ASSERT_TRUE(archive.ok());
  EXPECT_THAT(baked.text, HasSubstr("\nsha256 " + hex(sha256(*archive)) + "\n"));
  ASSERT_EQ(run(run_it + " --output " + path("compiled")).status, 0);
  const Finished finished = run(run_it + " --kernels " + path("kernels") + " --output " + path("baked"));
  ASSERT_EQ(finished.status, 0) << finished.text;
  const auto compiled = safetensors::load(path("compiled")), from_archive = safetensors::load(path("baked"));
  ASSERT_TRUE(compiled.ok() && from_archive.ok());
  for (const auto& [name, array] : compiled->arrays)
    EXPECT_EQ(array.floats(), from_archive->arrays.at(name).floats());
  std::ofstream(path("kernels"), std::ios::app) << "x";
  const Finished damaged = run(run_it + " --kernels " + path("kernels") + " --output " + path("none"));
  EXPECT_EQ(damaged.status, 1);
  EXPECT_THAT(
      damaged.text,
      HasSubstr("kernel archive: found a damaged or truncated file, expected a whole one. Bake it again."));
}

TEST_F(CommandLine, BakesForTheProfileOfADeviceElsewhere) {
  const char* device = std::getenv("IMPRINT_TEST_DEVICE");
  const Finished written = run("devices --profile " + path("here.json") +
                               (device ? " --device '" + std::string(device) + "'" : ""));
  ASSERT_EQ(written.status, 0) << written.text;
  std::ofstream(path("brains.json"))
      << R"([{"observation_count": 3, "branch_sizes": [4], "learner": "feedback",
    "feedback": {"learning_rate": 0.002}},
    {"name": "seer", "observation_count": 3, "branch_sizes": [4, 2], "observations": [8, 3], "actions": true,
    "hidden_sizes": []}])";
  const Finished baked = run("bake --agent " + path("brains.json") + " --profile " + path("here.json") +
                             " --profile software --output " + path("kernels"));
  ASSERT_EQ(baked.status, 0) << baked.text;
  EXPECT_THAT(baked.text, HasSubstr("brain 'seer': "));
  EXPECT_THAT(baked.text, HasSubstr(", software"));
}

TEST_F(CommandLine, MeasuresModelsForGivenShapes) {
  const std::string model = test::model_path("godot/BallChase.onnx");
  const Finished profiled = run("run " + model + " --repeat 3 --profile --shape obs=5x21 --device cpu");
  ASSERT_EQ(profiled.status, 0) << profiled.text;
  EXPECT_THAT(profiled.text, HasSubstr("3 runs with copies: median "));
  EXPECT_THAT(profiled.text, HasSubstr("tanh"));
  EXPECT_THAT(profiled.text, HasSubstr("output F32 [5, 2]"));
  const Finished inspected = run("inspect " + model + " --shape obs=7x21 --svg " + path("graph.svg"));
  ASSERT_EQ(inspected.status, 0) << inspected.text;
  EXPECT_THAT(inspected.text, HasSubstr("float32 [7, 2]"));
  EXPECT_THAT(inspected.text, HasSubstr(" dispatches of "));
  const auto picture = read_file(path("graph.svg"));
  ASSERT_TRUE(picture.ok());
  const std::string_view svg(reinterpret_cast<const char*>(picture->data()), picture->size());
  EXPECT_THAT(svg, HasSubstr(">Gemm</text>"));
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
  const Finished measured =
      run("bench " + model + " --device cpu --batch 2 --seconds 0.01 --warmup 1 --repeats 2");
  ASSERT_EQ(measured.status, 0) << measured.text;
  EXPECT_THAT(measured.text, HasSubstr("\nBallChase "));
  const struct {
    std::string arguments, complaint;
  } wrong[] = {
      {"inspect " + model + " --shape obs=7xx", "--shape: found 'obs=7xx', expected NAME=1x3x48x192"},
      {"run " + model + " --shape eyes=7", "has no input 'eyes'"},
      {"bench " + model + " --shape obs=1x21 --shape obs=2x21", "found 'obs' again"}};
  for (const auto& [arguments, complaint] : wrong) EXPECT_THAT(run(arguments).text, HasSubstr(complaint));
}

TEST_F(CommandLine, BakesModelsAsAGameMakesThem) {
  const std::string model = test::model_path("godot/BallChase.onnx");
  const auto bake = [&](const std::string& more) {
    std::ofstream(path("model.json")) << R"([{"path": ")" << model << R"(", "name": "herd")" << more << "}]";
    return run("bake --game-model " + path("model.json") + " --profile software --output " + path("kernels"));
  };
  const Finished baked = bake(R"(, "extents": [{"name": "batch_size", "value": 16}],
    "states": [{"input": "state_ins", "output": "state_outs"}],
    "bindings": [{"name": "obs", "shape": [16, 21]}])");
  ASSERT_EQ(baked.status, 0) << baked.text;
  EXPECT_THAT(baked.text, HasSubstr("model.json, model 'herd': "));
  const struct {
    std::string more, complaint;
  } wrong[] = {
      {R"(, "extents": [{"name": "batch", "value": 16}])", "desc.extents: found 'batch'"},
      {R"(, "extents": [{"name": "batch_size"}])",
       "extents[0].value: found nothing, expected a whole number up to 2147483647"},
      {R"(, "state": [])", "imp_model_desc has no field 'state'"},
      {R"(, "states": 3)", "states: found 3, expected a list of objects"},
      {R"(, "states": [{"input": "a", "out": "b"}])", "states[0].imp_model_state has no field 'out'"},
      {R"(, "bindings": [{"name": "obs", "shape": [4]}])", "expected as many elements as 'obs'"},
      {R"(, "bindings": [{"name": "obs", "shape": [65536, 65536]}])", "expected 1 to 8 extents"}};
  for (const auto& [more, complaint] : wrong) {
    const Finished finished = bake(more);
    EXPECT_EQ(finished.status, 1) << more;
    EXPECT_THAT(finished.text, HasSubstr(complaint)) << more;
  }
}

TEST_F(CommandLine, BakesNoMoreDispatchesThanItsLimit) {
  const Finished finished = run("bake --most-dispatches 1 --model " +
                                test::model_path("godot/BallChase.onnx") + " --output " + path("kernels"));
  EXPECT_EQ(finished.status, 1);
  EXPECT_THAT(
      finished.text,
      HasSubstr("found 2 dispatches, expected at most 1. If you trust the file, raise --most-dispatches"));
}

TEST_F(CommandLine, NamesFaultsOfBakeRequests) {
  const std::string output = " --output " + path("kernels");
  const auto brain = [&](const std::string& text) {
    std::ofstream(path("brain.json")) << text;
    return "bake --agent " + path("brain.json") + output;
  };
  std::ofstream(path("profile.json")) << R"({"max_shared_memory": 3})";
  std::ofstream(path("negative.json")) << R"({"max_shared_memory_bytes": -3})";
  std::ofstream(path("nothing.json")) << R"({"max_workgroup_invocations": 0})";
  const std::string deep =
      std::string(400'000, '[') + std::string(400'000, ']');  // deeper than the stack allows
  std::ofstream(path("deep.json")) << R"({"observation_count": )" << deep << "}";
  const std::string good = brain(R"({"observation_count": 3, "branch_sizes": [4]})");
  const struct {
    std::string arguments, complaint;
  } wrong[] = {
      {"bake" + output,
       "found nothing to bake. Name what the game loads, with --model, --game-model and --agent."},
      {good + " --profile phone",
       "profile: found 'phone', expected one of desktop, software, baseline or a file"},
      {good + " --profile " + path("profile.json"), "there is no field 'max_shared_memory'"},
      {good + " --profile " + path("negative.json"),
       "max_shared_memory_bytes: found -3, expected a whole number of 32 bits"},
      {good + " --profile " + path("brain.json"), "brain.json': there is no field '"},
      {good + " --profile " + path("nothing.json"),
       "max_workgroup_invocations: found 0, expected at least 128"},
      {good + " --profile " + path("deep.json"), "found JSON nested deeper than 8 levels"},
      {"bake --agent " + path("deep.json") + output, "found JSON nested deeper than 8 levels"},
      {good + " --tuning " + path("brain.json"), "brain.json': tuning table: "},
      {good + " --tuning none.json", "cannot read 'none.json'"},
      {good + " --device cpu", "device: found 'cpu', expected a Vulkan device"},
      {"bake --model none.onnx" + output, "cannot read 'none.onnx'"},
      {"bake --model " + path("profile.json") + output, "profile.json': onnx: "},
      {"bake --model " + test::model_path("godot/BallChase.onnx") + " --batch 1,1073741824" + output,
       "BallChase.onnx': input 'obs' of shape [1073741824, 21]"},
      {"bake --model " + test::model_path("godot/BallChase.onnx") + " --output ''",
       "cannot write '': this names no file"},
      {"bake --agent none.json" + output, "cannot read 'none.json'"},
  };
  for (const auto& [arguments, complaint] : wrong) {
    const Finished finished = run(arguments);
    EXPECT_EQ(finished.status, 1) << arguments;
    EXPECT_THAT(finished.text, HasSubstr("imprint bake: ")) << arguments;
    EXPECT_THAT(finished.text, HasSubstr(complaint)) << arguments;
  }
  const struct {
    const char *text, *complaint;
  } brains[] = {
      {"{", "found no JSON at byte 2"},
      {"[3]", "this is no JSON object"},
      {"[]", "the list has no brain"},
      {R"({"observations_count": 3})", "nor imp_network_options has a field 'observations_count'"},
      {R"({"observation_count": -3})", "observation_count: found -3, expected a whole number of 32 bits"},
      {R"({"observation_count": 4294967296})", "expected a whole number of 32 bits"},
      {R"({"learner": "magic"})", "learner: found \"magic\", expected one of none, feedback, cloning"},
      {R"({"branch_sizes": [4, "b"]})", "expected a list of which each is a whole number"},
      {R"({"margin": 1})", "nor imp_network_options has a field 'margin'"},
      {R"({"streams": 3})", "streams: found 3, expected a list of at most 16 streams"},
      {R"({"streams": [{"depth": 3}]})", "streams with the fields of imp_stream; it has no 'depth'"},
      {R"({"streams": [{"kind": "sound"}]})", "streams whose kind is one of vector, picture, entities, ids"},
      {R"({"learner": "feedback", "feedback": {"margin": "wide"}})",
       "feedback.margin: found \"wide\", expected a number"},
      {R"({"learner": "feedback", "feedback": {"epochs": 3}})", "imp_feedback_options has no field 'epochs'"},
      {R"({"learner": "dqn", "feedback": {}})", "feedback: found options of feedback, expected those of dqn"},
      {R"({"learner": "ppo", "ppo": 3})", "ppo: found 3, expected an object"},
      {R"({"observations": []})", "expected a shape of 1 to 8 extents of 1 or more"},
      {R"({"observations": [0, 3]})", "expected a shape of 1 to 8 extents of 1 or more"},
      {R"({"observations": [65536, 65536]})", "and at most 2147483647 elements"},
      {R"({"actions": 2})", "expected true or false"},
      {R"({"observation_count": 3})", "branch_count: found 0"},
      {R"({"observation_count": 3, "branch_sizes": [4], "hidden_sizes": [32768, 32768]})",
       "hidden_sizes: found 4296146960 bytes of weights, expected at most 1073741824"},
  };
  for (const auto& [text, complaint] : brains) {
    const Finished finished = run(brain(text));
    EXPECT_EQ(finished.status, 1) << text;
    EXPECT_THAT(finished.text, HasSubstr(complaint)) << text;
  }
  EXPECT_FALSE(std::filesystem::exists(path("kernels")));
}

// One line, before anything is compiled, and no partial file.
TEST_F(CommandLine, NamesUnreadableAndUnwritableFiles) {
  const std::string model = test::model_path("godot/BallChase.onnx"),
                    input = test::model_path("godot/BallChase.ref.safetensors");
  const auto cut = [&](const std::string& file, const std::string& name) {
    std::filesystem::copy_file(file, path(name));
    std::filesystem::resize_file(path(name), std::filesystem::file_size(file) / 2);
    return path(name);
  };
  const std::string cut_model = cut(model, "cut.onnx"), cut_input = cut(input, "cut.safetensors"),
                    folder = folder_.string();
  std::ofstream(path("empty")).close();
  const std::string unreadable[] = {path("none"), folder, path("empty"), "/dev/null"},
                    unwritable[] = {path("none/o"), folder, path("empty/o"), "/proc/o", "", "/dev/full"};
  const std::string into = " --output " + path("o");
  std::vector<std::string> wrong{"inspect " + cut_model, "bake --model " + cut_model + into,
                                 "devices --profile " + path("o") + " --device 99",
                                 "bake --model " + model + " --device 99" + into};
  for (const std::string& file : unreadable)
    for (const std::string& start :
         {"inspect " + file, "bake --model " + file + into, "bake --agent " + file + into,
          "bake --model " + model + " --profile " + file + into,
          "bake --model " + model + " --tuning " + file + into})
      wrong.push_back(start);
  for (const std::string& file : unwritable) {
    wrong.push_back("bake --model " + model + " --output '" + file + "'");
    wrong.push_back("devices --profile '" + file + "'");
  }
  std::vector<std::string> runs{cut_model + " --input " + input + into,
                                model + " --input " + cut_input + into};
  for (const std::string& file : unreadable) {
    runs.push_back(file + " --input " + input + into);
    runs.push_back(model + " --input " + file + into);
    runs.push_back(model + " --input " + input + " --kernels " + file + into);
  }
  for (const std::string& file : unwritable)
    runs.push_back(model + " --input " + input + " --output '" + file + "'");
  for (const std::string& start : runs) {
    wrong.push_back("run " + start);
    wrong.push_back("run " + start + " --device cpu");
  }
  wrong.push_back("run " + model + " --input " + input + into + " --device 99");
  for (const std::string& arguments : wrong) {
    const Finished finished = run(arguments);
    EXPECT_EQ(finished.status, 1) << arguments;
    EXPECT_EQ(std::ranges::count(finished.text, '\n'), 1) << arguments << ": " << finished.text;
    EXPECT_TRUE(finished.text.starts_with("imprint " + arguments.substr(0, arguments.find(' ')) + ": "))
        << arguments << ": " << finished.text;
    EXPECT_FALSE(std::filesystem::exists(path("o"))) << arguments;
  }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 3)
      << "cut.onnx, cut.safetensors, empty";
}

TEST_F(CommandLine, ListsDevices) {
  const Finished json = run("devices --json");
  EXPECT_EQ(json.status, 0) << json.text;
  EXPECT_THAT(json.text, HasSubstr("\"timeline_semaphore\""));
}

}  // namespace
}  // namespace imprint

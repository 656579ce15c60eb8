// The tree follows the house rules, and the checks find violations.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/unit/house_rules.h"

namespace imprint::house {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::filesystem::path kRoot = IMPRINT_SOURCE_DIR;

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

TEST(House, RoomsIncludeOnlyRoomsBeforeThem) { EXPECT_EQ(joined(wrong_includes(kRoot)), ""); }
TEST(House, GuestsMakeNoForbiddenCalls) { EXPECT_EQ(joined(forbidden_calls(kRoot)), ""); }
TEST(House, FilesAreShort) { EXPECT_EQ(joined(oversized_files(kRoot)), ""); }
TEST(House, LinesAreShort) { EXPECT_EQ(joined(wide_lines(kRoot)), ""); }
TEST(House, FunctionsAreShort) { EXPECT_EQ(joined(long_functions(kRoot)), ""); }
TEST(House, IncludesFormNoKnots) { EXPECT_EQ(joined(include_knots(kRoot)), ""); }
TEST(House, HeadersNameEveryOperation) { EXPECT_EQ(joined(undocumented_ops(kRoot)), ""); }
TEST(House, UsersSeeTheFaceAlone) { EXPECT_EQ(joined(names_outside_the_face(kRoot)), ""); }

// A tree for one test, removed afterwards.
class BadHouse : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = std::filesystem::temp_directory_path() /
            ("imprint-house-" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
    std::filesystem::remove_all(root_);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }

  std::filesystem::path root_;
};

TEST_F(BadHouse, IncludesAgainstTheDirectionAreNamed) {
  write("compute/graph/a.cpp",
        "#include \"compute/tensor/tensor.h\"\n#include \"compute/program/program.h\"\n");
  EXPECT_THAT(wrong_includes(root_),
              ElementsAre(HasSubstr("compute/graph/a.cpp:2: includes compute/program/program.h")));
}

TEST_F(BadHouse, FoldersOfARoomGoOneWay) {
  write("compute/nn/learners/a.h",
        "#include \"compute/nn/module.h\"\n#include \"compute/nn/losses/a.h\"\n#include "
        "\"compute/nn/learners/b.h\"\n#include \"compute/graph/gradients/a.h\"\n");
  write("compute/graph/gradients/a.h",
        "#include \"compute/graph/graph.h\"\n#include \"compute/graph/passes/a.h\"\n");
  EXPECT_THAT(wrong_includes(root_), IsEmpty());
  write("compute/nn/module.h", "#include \"compute/nn/modules/a.h\"\n");
  write("compute/nn/losses/a.h", "#include \"compute/nn/learners/a.h\"\n");
  write("compute/graph/plan/a.h", "#include \"compute/graph/gradients/a.h\"\n");
  EXPECT_THAT(wrong_includes(root_),
              ElementsAre(HasSubstr("compute/graph/plan/a.h:1: includes compute/graph/gradients/a.h"),
                          HasSubstr("compute/nn/losses/a.h:1"), HasSubstr("compute/nn/module.h:1")));
}

TEST_F(BadHouse, FoldersInsideOfAFolderGoOneWayToo) {
  write("compute/model/policy.h", "#include \"compute/model/onnx/import.h\"\n");
  write("compute/model/onnx/import.h",
        "#include \"compute/model/files/file.h\"\n#include \"compute/model/onnx/format/proto.h\"\n");
  write("compute/model/onnx/ops/a.cpp",
        "#include \"compute/model/onnx/op.h\"\n#include \"compute/model/onnx/format/proto.h\"\n");
  EXPECT_THAT(wrong_includes(root_), IsEmpty());
  write("compute/model/files/file.h", "#include \"compute/model/policy.h\"\n");
  write("compute/model/onnx/format/proto.h", "#include \"compute/model/onnx/import.h\"\n");
  write("compute/model/onnx/op.h", "#include \"compute/model/onnx/ops/a.h\"\n");
  EXPECT_THAT(wrong_includes(root_),
              ElementsAre(HasSubstr("files/file.h:1"), HasSubstr("onnx/format/proto.h:1"),
                          HasSubstr("onnx/op.h:1: includes compute/model/onnx/ops/a.h")));
}

TEST_F(BadHouse, TheCInterfaceSeesTheAgentsFaceAlone) {
  write("plugin/abi/a.cpp",
        "#include \"plugin/agent/agent_system.h\"\n#include \"plugin/agent/spec/brain_spec.h\"\n"
        "#include \"plugin/agent/learn/learners/ppo.h\"\n");
  EXPECT_THAT(wrong_includes(root_),
              ElementsAre(HasSubstr("plugin/abi/a.cpp:3: includes plugin/agent/learn/learners/ppo.h")));
}

TEST_F(BadHouse, PlanningKnowsNoVulkan) {
  write("compute/graph/a.h", "#include <vulkan/vulkan_core.h>\n");
  write("compute/graph/b.h", "#include \"compute/vk/device.h\"\n");
  write("compute/tensor/c.h", "#  include \"compute/vk/device.h\"\n");
  EXPECT_EQ(wrong_includes(root_).size(), 3u);
}

TEST_F(BadHouse, SamplesSeePublicHeadersOnly) {
  write("samples/pet/a.cpp",
        "#include <imprint/imprint.h>\n#include \"samples/pet/b.h\"\n#include \"yard.h\"\n"
        "#include \"samples/adapters/vulkan.h\"\n");
  EXPECT_THAT(wrong_includes(root_), IsEmpty());
  write("samples/pet/b.h", "#include \"plugin/agent/brain.h\"\n");
  write("samples/pet/c.h", "#include \"compute/nn/linear.h\"\n");
  EXPECT_EQ(wrong_includes(root_).size(), 2u);
}

TEST_F(BadHouse, ThePetsFoldersGoOneWay) {
  write("samples/pet/game.cpp",
        "#include <imprint/imprint.h>\n#include \"samples/pet/brain/a.h\"\n#include "
        "\"samples/pet/view/stage.h\"\n");
  write("samples/pet/brain/a.h",
        "#include <imprint/imprint.hpp>\n#include \"samples/pet/brain/b.h\"\n#include "
        "\"samples/pet/yard/world.h\"\n");
  write("samples/pet/kept/a.h", "#include \"samples/pet/yard/world.h\"\n");
  write("samples/pet/view/stage.cpp", "#include \"samples/pet/view/overlay/a.h\"\n");
  write("samples/pet/view/overlay/a.cpp",
        "#include <vulkan/vulkan.h>\n#include \"samples/pet/view/input/a.h\"\n");
  EXPECT_THAT(wrong_includes(root_), IsEmpty());
  write("samples/pet/yard/world.h",
        "#include <imprint/imprint.h>\n#include <vulkan/vulkan.h>\n#include \"samples/pet/kept/a.h\"\n");
  write("samples/pet/kept/b.h", "#include \"samples/pet/brain/a.h\"\n");
  write("samples/pet/brain/b.h", "#include <vulkan/vulkan.h>\n#include \"samples/pet/game.h\"\n");
  write("samples/pet/view/stage.h", "#include \"samples/pet/brain/a.h\"\n");
  write("samples/pet/view/overlay/a.h", "#include \"samples/pet/view/stage.h\"\n");
  write("samples/pet/view/models/a.h", "#include \"samples/pet/view/render/a.h\"\n");
  EXPECT_THAT(
      wrong_includes(root_),
      ElementsAre(HasSubstr("brain/b.h:1"), HasSubstr("brain/b.h:2"), HasSubstr("kept/b.h:1"),
                  HasSubstr("view/models/a.h:1"), HasSubstr("view/overlay/a.h:1"),
                  HasSubstr("view/stage.h:1"), HasSubstr("yard/world.h:1"), HasSubstr("yard/world.h:2"),
                  HasSubstr("yard/world.h:3: includes samples/pet/kept/a.h: a folder of the pet includes "
                            "only folders before it")));
}

TEST_F(BadHouse, CallsAreFoundInCodeButNotInProse) {
  write("engine-bridge/a.cpp",
        "// never vkDeviceWaitIdle(device)\nauto text = \"printf(\";\nint n = snprintf(b, 4, \"\");\n");
  write("engine-bridge/own/own_device.cpp", "vkGetDeviceQueue(device, 0, 0, &queue);\n");
  EXPECT_THAT(forbidden_calls(root_), IsEmpty());
  write("compute/vk/b.cpp",
        "f.vkQueueWaitIdle(queue);\nf.vkGetDeviceQueue(d, 0, 0, &q);\nstd::abort();\n#include "
        "<iostream>\nprintf(\"\");\n");
  EXPECT_EQ(forbidden_calls(root_).size(), 5u);
}

TEST_F(BadHouse, NumbersDoNotPassThroughTheHostsLocale) {
  write("plugin/a.cpp", "snprintf(b, 4, \"%d of 5 % a\", 1);\n// strtod(text)\n");
  EXPECT_THAT(forbidden_calls(root_), IsEmpty());
  write("plugin/b.cpp", "snprintf(b, 9, \"%.9g\", x);\nstd::stof(text);\nstrtod(text, &end);\n");
  EXPECT_EQ(forbidden_calls(root_).size(), 3u);
}

TEST_F(BadHouse, LongFilesAreNamed) {
  write("shaders/a.comp", std::string(600, '\n'));
  write("tools/b.cpp", std::string(601, '\n'));
  EXPECT_THAT(oversized_files(root_), ElementsAre(HasSubstr("tools/b.cpp: found 601 lines")));
}

TEST_F(BadHouse, WideLinesAreNamed) {
  write("tools/a.cpp", std::string(110, 'x') + "\n");
  write("tools/b.cpp", "\n" + std::string(111, 'x') + "\n");
  EXPECT_THAT(wide_lines(root_), ElementsAre(HasSubstr("tools/b.cpp:2: found 111 columns")));
}

TEST_F(BadHouse, LongFunctionsAreNamed) {
  const std::string body(79, '\n');  // with the braces' lines 81 in all
  write("tools/short.cpp", "int f() {\n" + std::string(78, '\n') + "}\n");
  write("tools/data.cpp", "const int kTable[] = {" + body + "};\nstruct S {" + body + "};\n");
  write("tools/text.cpp",
        "int f() { return 1; }\n/*" + body + "{ */ // {\nauto t = R\"({" + body + ")\";\n#define X {\n");
  EXPECT_THAT(long_functions(root_), IsEmpty());
  write("tools/long.cpp", "namespace a {\nS::S(int x)\n    : x_{x} {" + body + "}\n}\n");
  write("tools/member.h", "struct S {\n  int g() const {\n" + body + "  }\n};\n");
  EXPECT_THAT(long_functions(root_), ElementsAre(HasSubstr("tools/long.cpp:2: S::S: found 81 lines"),
                                                 HasSubstr("tools/member.h:2: g: found 81 lines")));
}

TEST_F(BadHouse, KnotsAreNamed) {
  write("tools/a.h", "#include \"tools/b.h\"\n");
  write("tools/b.h", "");
  write("tools/b.cpp", "#include \"tools/c.h\"\n");
  write("tools/c.h", "#include \"a.h\"\n");
  EXPECT_THAT(include_knots(root_), IsEmpty());
  write("tools/c.h", "#include \"tools/d.h\"\n");
  write("tools/d.h", "#include \"tools/a.h\"\n");
  EXPECT_THAT(include_knots(root_), ElementsAre(HasSubstr("4 files")));
}

TEST_F(BadHouse, NamesOutsideTheFaceAreFound) {
  write("compute/include/imprint/compute.h", "#include \"compute/graph/a.h\"\n");
  write("compute/graph/a.h",
        "namespace imprint {\n\nclass Tensor {\n};\nnamespace graph {\nstruct Task {\n};\n}  // namespace "
        "graph\n"
        "struct Store;\n\n}  // namespace imprint\n");
  EXPECT_THAT(names_outside_the_face(root_), IsEmpty());
  write("compute/graph/a.h",
        "namespace imprint {\n\nstruct Store {\n};\nbool fuse(int);\ninline constexpr int kTile = 1;\n\n}  "
        "// namespace imprint\n");
  EXPECT_THAT(names_outside_the_face(root_), ElementsAre(HasSubstr("a.h:3: found Store"),
                                                         HasSubstr("found fuse"), HasSubstr("found kTile")));
}

TEST_F(BadHouse, OperationsThatNoCommentNamesAreFound) {
  write("compute/tensor/op_rows.h",
        "  X(abs, elementwise, 1, floats) \\\n  X(cube, elementwise, 1, floats) \\\n"
        "  X(reduce_or, reduce, 1, reduce, 1, flat, any_bits, bit_or, 0, 0)\n");
  write("compute/tensor/tensor.h",
        "// The rows: Tensor abs(const Tensor& x).\nTensor cube(const Tensor&);\n");
  EXPECT_THAT(undocumented_ops(root_),
              ElementsAre(HasSubstr("op_rows.h:2: found cube"), HasSubstr("found any_bits")));
  write("compute/tensor/tensor.h", "// The rows: abs, cube,\n// any_bits.\n");
  EXPECT_THAT(undocumented_ops(root_), IsEmpty());
}

}  // namespace
}  // namespace imprint::house

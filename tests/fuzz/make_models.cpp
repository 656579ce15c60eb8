// Seeds of the ONNX reader for operators that no file of others in the corpus has.

#include "tests/fuzz/make_models.h"

#include "tests/unit/model_onnx_builder.h"

namespace imprint::fuzz {
namespace {

using test::OnnxBuilder;
using Names = std::vector<std::string>;
constexpr int kString = 8;

void add_words(OnnxBuilder& builder, const std::string& name, const Names& words) {
  builder.graph_field(5, [&](protozero::pbf_writer& tensor) {
    tensor.add_int64(1, static_cast<std::int64_t>(words.size()));
    tensor.add_int32(2, kString);
    for (const std::string& word : words) tensor.add_string(6, word);
    tensor.add_string(8, name);
  });
}

// An input that is a sequence (4) or an optional (9) of float tensors.
void add_list(OnnxBuilder& builder, const std::string& name, std::uint32_t kind) {
  builder.graph_field(11, [&](protozero::pbf_writer& info) {
    info.add_string(1, name);
    protozero::pbf_writer type(info, 2);
    protozero::pbf_writer list(type, kind);
    protozero::pbf_writer inner(list, 1);
    protozero::pbf_writer tensor(inner, 1);
    tensor.add_int32(1, test::kFloat);
  });
}

OnnxBuilder sequences() {
  OnnxBuilder body, builder(18);
  body.input("part", {"2"}).node("Neg", {"part"}, {"sum"}).output("sum");
  add_list(builder, "s", 4);
  add_list(builder, "o", 9);
  builder.input("x", {"2"}).longs("at", {}, {-1}).longs("sizes", {2}, {1, 1});
  builder.node("SequenceInsert", {"s", "x", "at"}, {"more"})
      .node("SequenceErase", {"more", "at"}, {"fewer"})
      .node("SequenceMap", {"fewer"}, {"mapped"}, {OnnxBuilder::body("body", body)})
      .node("SequenceLength", {"mapped"}, {"n"})
      .node("SequenceAt", {"mapped", "at"}, {"one"})
      .node("SplitToSequence", {"one", "sizes"}, {"parts"})
      .node("SequenceConstruct", {"one", "x"}, {"two"})
      .node("ConcatFromSequence", {"two"}, {"y"}, {OnnxBuilder::number("axis", 0)})
      .node("ConcatFromSequence", {"parts"}, {"z"}, {OnnxBuilder::number("axis", 0)})
      .node("SequenceEmpty", {}, {"none"})
      .node("SequenceLength", {"none"}, {"m"})
      .node("Optional", {"x"}, {"held"})
      .node("OptionalGetElement", {"held"}, {"got"})
      .node("OptionalHasElement", {"o"}, {"there"});
  for (const char* name : {"n", "m"}) builder.output(name, {}, test::kInt64);
  for (const char* name : {"y", "z", "got"}) builder.output(name);
  return std::move(builder.output("there", {}, test::kBool));
}

OnnxBuilder texts() {
  OnnxBuilder builder;
  add_words(builder, "words", {"a", "B", "stop", "1.5"});
  builder.input("x", {"2", "4"}, test::kInt64)
      .node("StringNormalizer", {"words"}, {"w"},
            {OnnxBuilder::text("case_change_action", "UPPER"), OnnxBuilder::words("stopwords", {"stop"})})
      .node("StringConcat", {"w", "w"}, {"c"})
      .node("Cast", {"x"}, {"t"}, {OnnxBuilder::number("to", kString)})
      .node("TfIdfVectorizer", {"x"}, {"y"},
            {OnnxBuilder::text("mode", "TFIDF"), OnnxBuilder::number("min_gram_length", 1),
             OnnxBuilder::number("max_gram_length", 2), OnnxBuilder::number("max_skip_count", 1),
             OnnxBuilder::list("ngram_counts", {0, 1}), OnnxBuilder::list("ngram_indexes", {0, 2}),
             OnnxBuilder::numbers("weights", {1, 2}), OnnxBuilder::list("pool_int64s", {5, 5, 6})});
  return std::move(builder.output("y").output("c", {}, kString).output("t", {}, kString));
}

OnnxBuilder draws() {
  OnnxBuilder builder;
  builder.input("p", {"2", "3"})
      .floats("ratio", {}, {0.5f})
      .raw("train", {}, test::kBool, std::string("\1", 1));
  builder.node("RandomUniform", {}, {"u"}, {OnnxBuilder::list("shape", {2, 3})})
      .node("RandomUniformLike", {"p"}, {"v"})
      .node("RandomNormal", {}, {"n"}, {OnnxBuilder::list("shape", {3}), OnnxBuilder::real("seed", 1)})
      .node("RandomNormalLike", {"p"}, {"m"})
      .node("Bernoulli", {"p"}, {"b"})
      .node("Multinomial", {"p"}, {"k"}, {OnnxBuilder::number("sample_size", 2)})
      .node("Dropout", {"p", "ratio", "train"}, {"d", "mask"});
  for (const char* name : {"u", "v", "n", "m", "b", "d"}) builder.output(name);
  return std::move(builder.output("k", {}, test::kInt32).output("mask", {}, test::kBool));
}

OnnxBuilder boxes() {
  OnnxBuilder builder(16);
  builder.input("x", {"1", "1", "3", "3"})
      .floats("boxes", {1, 2, 4}, {0, 0, 1, 1, 0, 0.5f, 1, 1})
      .floats("scores", {1, 1, 2}, {0.5f, 0.75f})
      .longs("most", {}, {2})
      .floats("half", {}, {0.5f})
      .floats("regions", {1, 4}, {0, 0, 2, 1})
      .floats("named", {1, 5}, {0, 0, 0, 2, 1})
      .longs("batch", {1}, {0})
      .node("NonMaxSuppression", {"boxes", "scores", "most", "half", "half"}, {"best"})
      .node("RoiAlign", {"x", "regions", "batch"}, {"a"}, {OnnxBuilder::number("output_width", 2)})
      .node("RoiAlign", {"x", "regions", "batch"}, {"b"}, {OnnxBuilder::text("mode", "max")})
      .node("MaxRoiPool", {"x", "named"}, {"c"}, {OnnxBuilder::list("pooled_shape", {1, 2})})
      .node("Unique", {"boxes"}, {"y", "at", "back", "n"}, {OnnxBuilder::number("axis", 1)});
  for (const char* name : {"a", "b", "c", "y"}) builder.output(name);
  for (const char* name : {"best", "at", "back", "n"}) builder.output(name, {}, test::kInt64);
  return builder;
}

OnnxBuilder steps() {
  OnnxBuilder builder;
  builder.input("x", {"2"}).input("g", {"2"}).floats("r", {}, {0.5f}).longs("t", {}, {1});
  const char* domain = "ai.onnx.preview.training";
  builder.node("Adagrad", {"r", "t", "x", "g", "x"}, {"a"}, {}, "", domain)
      .node("Momentum", {"r", "t", "x", "g", "x"}, {"b"}, {}, "", domain)
      .node("Adam", {"r", "t", "x", "g", "x", "x"}, {"c"}, {}, "", domain);
  return std::move(builder.output("a").output("b").output("c"));
}

OnnxBuilder microsoft() {
  OnnxBuilder builder;
  builder.input("q", {"1", "1", "4"}).input("k", {"1", "1", "2"}).input("past", {"1", "1", "1", "2"});
  builder.input("i", {"1", "2"}, test::kInt32).input("u", {"2"}, test::kUint8).input("x", {"1", "1", "3"});
  builder.raw("last", {1}, test::kInt32, std::string("\1\0\0\0", 4))
      .raw("total", {}, test::kInt32, std::string("\2\0\0\0", 4))
      .floats("cos", {4, 1}, {1, 0, -1, 0})
      .floats("table", {4, 2}, {1, 2, 3, 4, 5, 6, 7, 8})
      .floats("gain", {2}, {1, 2})
      .raw("w", {1, 1, 8}, test::kUint8, std::string(8, '\x9a'))
      .floats("scale", {1}, {0.5f})
      .raw("zero", {1}, test::kUint8, std::string("\3", 1))
      .floats("kernel", {1, 1, 2}, {1, -1})
      .floats("rows", {1, 16}, std::vector<float>(16, 0.5f));
  const auto node = [&](const char* op, const Names& inputs, const char* out,
                        const std::vector<OnnxBuilder::Attribute>& attributes = {}) {
    builder.node(op, inputs, {out}, attributes, "", "com.microsoft");
  };
  node("GroupQueryAttention", {"q", "k", "k", "past", "past", "last", "total", "cos", "cos"}, "a",
       {OnnxBuilder::number("num_heads", 2), OnnxBuilder::number("kv_num_heads", 1),
        OnnxBuilder::number("do_rotary", 1), OnnxBuilder::number("local_window_size", 2)});
  node("MatMulNBits", {"rows", "w", "scale", "zero"}, "b",
       {OnnxBuilder::number("K", 16), OnnxBuilder::number("N", 1), OnnxBuilder::number("block_size", 16)});
  node("FusedConv", {"x", "kernel"}, "c", {OnnxBuilder::text("activation", "Relu")});
  node("FusedGemm", {"rows", "rows"}, "d", {OnnxBuilder::number("transB", 1)});
  node("EmbedLayerNormalization", {"i", "", "table", "table", "", "gain", "gain"}, "e");
  const Names pair{"u", "scale", "zero", "u", "scale", "zero", "scale", "zero"},
      one{"u", "scale", "zero", "scale", "zero"};
  node("QLinearAdd", pair, "f");
  node("QLinearMul", pair, "g");
  node("QLinearSigmoid", one, "h");
  node("QLinearLeakyRelu", one, "j");
  node("QLinearConcat", {"scale", "zero", "u", "scale", "zero", "u", "scale", "zero"}, "l");
  for (const char* name : {"a", "b", "c", "d", "e"}) builder.output(name);
  for (const char* name : {"f", "g", "h", "j", "l"}) builder.output(name, {}, test::kUint8);
  return builder;
}

}  // namespace

std::vector<ModelSeed> model_seeds() {
  return {{"own-sequences.onnx", sequences().bytes()}, {"own-texts.onnx", texts().bytes()},
          {"own-draws.onnx", draws().bytes()},         {"own-boxes.onnx", boxes().bytes()},
          {"own-steps.onnx", steps().bytes()},         {"own-microsoft.onnx", microsoft().bytes()}};
}

}  // namespace imprint::fuzz

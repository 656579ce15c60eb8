#include "compute/model/onnx/graph.h"

#include <algorithm>
#include <numeric>
#include <queue>

#include "compute/base/amount.h"
#include "compute/base/quote.h"
#include "compute/base/text.h"
#include "compute/tensor/made_nodes.h"

namespace imprint::onnx {
namespace {

constexpr std::size_t kMaxNodeNames = 1 << 14;  // inputs of one node, and outputs
constexpr int kMaxNesting = 2 * kMaxDepth;      // of bodies and function calls
constexpr std::int64_t kFreeSymbolSize = 8;     // of a node's result: a shape
constexpr std::int64_t kOperationsPerPart = 2;  // of a body that is imported again

// Operations that compute such a list in each run.
std::int64_t size_of(const std::vector<SymbolicInt>& symbols) {
  std::int64_t size = 0;
  for (const SymbolicInt& symbol : symbols) size += symbol.size();
  return size;
}

Error bad_graph(const std::string& reason) { return make_error(ErrorCode::corrupt_file, reason); }

std::string full_name(const Node& node) {
  return node.domain.empty() ? node.op_type : node.domain + "." + node.op_type;
}

// A name that is looked up counts once for each 64 bytes.
std::int64_t parts_of(std::string_view name) { return 1 + static_cast<std::int64_t>(name.size() / 64); }

}  // namespace

std::string body_text(const Node& node, const Graph& body) {
  for (const Attribute& attribute : node.attributes)
    for (const Graph& graph : attribute.graphs)
      if (&graph == &body) return text(node.text(), ", ", clipped(attribute.name), ": ");
  return text(node.text(), ", function: ");
}

std::string Refusals::path() const {
  std::string out;
  if (unsupported_.size() < kMaxListed)
    for (const auto& [node, body] : inside_) out += body_text(*node, *body);
  return out;
}

void Refusals::keep(const Error& error) {
  if (error.code == ErrorCode::unsupported)
    unsupported(error.message);
  else if (!wrong_)
    wrong_ = make_error(error.code, text("onnx: ", path(), error.message));
}

void Refusals::end(const std::string& what) {
  if (!wrong_) wrong_ = make_error(ErrorCode::unsupported, text("onnx: not supported: ", path(), what));
}

void Refusals::lacks(const Node& node) {
  const auto [entry, fresh] = lacking_.emplace(clipped(full_name(node)), 0);
  ++lacking_count_;
  if (++entry->second <= 4) unsupported("operator " + node.text());
}

bool Refusals::forget_since(const Bodies::Mark& mark) {
  if (lacking_count_ != mark.lacking) return false;
  unsupported_.resize(std::min(unsupported_.size(), mark.unsupported));
  if (!mark.wrong) wrong_.reset();
  return true;
}

std::optional<Error> Refusals::error() const {
  if (unsupported_.empty()) return wrong_;
  std::string list = "onnx: not supported: ";
  for (std::size_t i = 0; i < std::min(unsupported_.size(), kMaxListed); ++i)
    list += (i == 0 ? "" : "; ") + unsupported_[i];
  if (unsupported_.size() >= kMaxListed) list += "; and more";
  std::string counts;
  std::size_t kinds = 0;
  for (const auto& [name, count] : lacking_)
    if (count > 4 && ++kinds <= kMaxListed)
      counts += text(counts.empty() ? " (in all " : ", ", count, " ", name);
  list += counts.empty() ? "" : counts + ")";
  if (wrong_) return make_error(wrong_->code, text(wrong_->message, "; besides, ", list));
  return make_error(ErrorCode::unsupported, list);
}

void ImportState::keep_quantised(const Node& node, const std::string& why_float) {
  ++(why_float.empty() ? quantised.whole : quantised.in_float);
  if (!why_float.empty() && quantised.reasons.size() < kMaxListed)
    quantised.reasons.push_back(text(node.text(), ": ", why_float));
}

bool ImportState::may_grow() const {
  return tensor::made_nodes() - nodes_before + imported_nodes <= most_nodes;
}

bool ImportState::may_name() const {
  return tensor::made_axis_names() - names_before <= tensor::kMostAxisNames;
}

const Function* ImportState::function_of(const Node& node) const {
  const auto found = functions.find({node.domain, node.op_type});
  return found == functions.end() ? nullptr : found->second;
}

BodyFacts& ImportState::facts_of(const Graph& body) {
  const auto [entry, fresh] = bodies.try_emplace(&body);
  BodyFacts& facts = entry->second;
  if (!fresh) return facts;
  NameSet made;
  made.reserve(body.initializers.size() + body.inputs.size() + body.nodes.size());
  std::vector<const BodyFacts*> nested_facts;
  for (const TensorData& tensor : body.initializers) made.insert(tensor.name);
  for (const ValueInfo& input : body.inputs) made.insert(input.name);
  for (const std::string_view name : made) facts.parts += parts_of(name);
  for (const Node& node : body.nodes) {
    facts.parts += 1 + static_cast<std::int64_t>(node.attributes.size());
    for (const auto* names : {&node.inputs, &node.outputs})
      for (const std::string& name : *names) facts.parts += parts_of(name);
    made.insert(node.outputs.begin(), node.outputs.end());
    for (const Attribute& attribute : node.attributes)
      for (const Graph& nested : attribute.graphs) {
        const BodyFacts& inner = facts_of(nested);
        nested_facts.push_back(&inner);
        facts.parts += inner.parts;
      }
  }
  for (const ValueInfo& output : body.outputs)
    facts.parts += parts_of(output.name);  // each is a value of its own, also of one name
  // In order, since messages depend on it. Names of one nested body are in order already.
  std::vector<std::string_view>& captured = facts.captured;
  const auto add = [&](std::string_view name) {
    if (!name.empty() && !made.contains(name)) captured.push_back(name);
  };
  for (const Node& node : body.nodes)
    for (const std::string& name : node.inputs) add(name);
  for (const ValueInfo& output : body.outputs) add(output.name);
  std::ranges::sort(captured);
  const auto own = static_cast<std::ptrdiff_t>(captured.size());
  for (const BodyFacts* inner : nested_facts)
    for (const std::string_view name : inner->captured) add(name);
  const std::ranges::subrange others(captured.begin() + own, captured.end());
  if (!std::ranges::is_sorted(others)) std::ranges::sort(others);
  std::ranges::inplace_merge(captured, others.begin());
  const auto repeated = std::ranges::unique(captured);
  captured.erase(repeated.begin(), repeated.end());
  return facts;
}

const AttributeMap& ImportState::defaults_of(const Function& function) {
  const auto [entry, fresh] = defaults.try_emplace(&function);
  if (fresh)
    for (const Attribute& attribute : function.defaults) entry->second[attribute.name] = &attribute;
  return entry->second;
}

const Value* GraphImporter::find(std::string_view name) const {
  const NameFacts* found = innermost(name, [](const NameFacts& facts) { return facts.value.has_value(); });
  return found ? &*found->value : nullptr;
}

const Value* GraphImporter::need(std::string_view name) const {
  const Value* value = find(name);
  if (value) return value;
  const NameFacts* unmade =
      innermost(name, [](const NameFacts& facts) { return facts.unmade_by != nullptr; });
  if (unmade)
    state_.refusals.unsupported(text(unmade->unmade_by->text(), ": output ", quote(std::string(name))));
  return nullptr;
}

std::size_t GraphImporter::maker_of(std::string_view name) const {
  const NameFacts* found = names_.find(name);
  return found ? found->maker : NameFacts::kNoMaker;
}

template <class Visit>
void GraphImporter::for_each_read(const Node& node, Visit visit) const {
  for (const std::string& input : node.inputs)
    if (!input.empty()) visit(std::string_view(input));
  for (const Attribute& attribute : node.attributes)
    for (const Graph& body : attribute.graphs)
      for (const std::string_view name : state_.facts_of(body).captured) visit(name);
}

Result<> GraphImporter::check_names() {
  names_.reserve(graph_.initializers.size() + graph_.inputs.size() + graph_.nodes.size());
  for (const TensorData& tensor : graph_.initializers)
    if (!make(tensor.name)) return bad_graph("two initializers are named " + quote(tensor.name));
  NameSet inputs;
  for (const ValueInfo& input : graph_.inputs) {
    if (input.name.empty()) return bad_graph("an input has no name");
    if (!inputs.insert(input.name).second) return bad_graph("two inputs are named " + quote(input.name));
    make(input.name);
  }
  for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
    const Node& node = graph_.nodes[i];
    if (std::max(node.inputs.size(), node.outputs.size()) > kMaxNodeNames)
      return make_error(
          ErrorCode::unsupported,
          text(node.text(), ": found ", amount(node.inputs.size(), "input"), " and ",
               amount(node.outputs.size(), "output"), ", expected at most ", kMaxNodeNames, " of each"));
    for (const std::string& output : node.outputs) {
      if (output.empty()) continue;
      NameFacts* const facts = make(output);
      if (!facts) return bad_graph(text(quote(output), " is made twice, the second time by ", node.text()));
      facts->maker = i;
    }
  }
  if (outer_) return {};  // the graph around it has looked for all that its bodies read
  std::string missing;
  std::size_t count = 0;
  const auto use = [&](std::string_view name, const auto& user) {
    if (name.empty() || innermost(name, [](const NameFacts& facts) { return facts.is_made; })) return;
    if (++count <= kMaxListed) missing += text(missing.empty() ? "" : ", ", quote(name), " (", user(), ")");
  };
  for (const Node& node : graph_.nodes)
    for_each_read(node, [&](std::string_view name) { use(name, [&] { return node.text(); }); });
  for (const ValueInfo& output : graph_.outputs) use(output.name, [] { return "an output of the graph"; });
  if (count > 0) return bad_graph("nothing makes " + missing + (count > kMaxListed ? " and more" : ""));
  return {};
}

// The nodes that outputs depend on, each after those it reads from, otherwise in the file's order. Not every
// file is sorted.
Result<std::vector<std::size_t>> GraphImporter::ordered_nodes() const {
  const std::size_t count = graph_.nodes.size();
  std::vector<bool> needed(count, false);
  std::vector<std::size_t> stack;
  std::vector<std::pair<std::size_t, std::size_t>> reads;  // maker, reader
  const auto need = [&](std::size_t maker) {
    if (needed[maker]) return;
    needed[maker] = true;
    stack.push_back(maker);
  };
  for (const ValueInfo& output : graph_.outputs)
    if (const std::size_t maker = maker_of(output.name); maker != NameFacts::kNoMaker) need(maker);
  while (!stack.empty()) {
    const std::size_t index = stack.back();
    stack.pop_back();
    for_each_read(graph_.nodes[index], [&](std::string_view name) {
      const std::size_t maker = maker_of(name);
      if (maker == NameFacts::kNoMaker) return;
      reads.emplace_back(maker, index);
      need(maker);
    });
  }

  // The readers of a node lie beside each other.
  std::vector<std::size_t> waits(count, 0), first(count + 1, 0), readers(reads.size());
  for (const auto& [maker, reader] : reads) ++waits[reader], ++first[maker + 1];
  std::partial_sum(first.begin(), first.end(), first.begin());
  std::vector<std::size_t> next(first.begin(), first.end() - 1);
  for (const auto& [maker, reader] : reads) readers[next[maker]++] = reader;
  std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;
  for (std::size_t i = 0; i < count; ++i)
    if (needed[i] && waits[i] == 0) ready.push(i);
  std::vector<std::size_t> order;
  while (!ready.empty()) {
    const std::size_t index = ready.top();
    ready.pop();
    order.push_back(index);
    for (std::size_t i = first[index]; i < first[index + 1]; ++i)
      if (--waits[readers[i]] == 0) ready.push(readers[i]);
  }
  for (std::size_t i = 0; i < count; ++i)
    if (waits[i] != 0) return bad_graph("the graph has a cycle through " + graph_.nodes[i].text());
  return order;
}

Result<> GraphImporter::import_nodes() {
  IMPRINT_ASSIGN(const std::vector<std::size_t> order, ordered_nodes());
  for (const std::size_t index : order) import_node(graph_.nodes[index]);
  return {};
}

void GraphImporter::list_missing(const Node& node) {
  if (!find_handler(node.domain, node.op_type) && !state_.function_of(node)) state_.refusals.lacks(node);
  list_missing_inside(node);
}

void GraphImporter::list_missing_inside(const Node& node) {
  for (const Attribute& attribute : node.attributes)
    for (const Graph& body : attribute.graphs) {
      const Refusals::Inside inside(state_.refusals, node, body);
      for (const Node& inner : body.nodes) list_missing(inner);
    }
}

void GraphImporter::import_node(const Node& node) {
  const OpHandler* handler = find_handler(node.domain, node.op_type);
  const Function* function = state_.function_of(node);
  if ((!handler && !function) || !state_.refusals.goes_on()) return list_missing(node);
  if (!may_grow(node)) return;
  if (!state_.may_name())
    return state_.refusals.end(text(node.text(), ": more than ", tensor::kMostAxisNames,
                                    " axes before it whose extents follow from others"));
  std::vector<Input> inputs;
  inputs.reserve(node.inputs.size());
  for (const std::string& name : node.inputs) {
    const NameFacts* const facts = name.empty() ? nullptr : innermost(name, [](const NameFacts& known) {
      return known.is_absent || known.value.has_value();
    });
    if (facts && facts->value) {
      inputs.emplace_back(*facts->value);
    } else if (name.empty() || facts) {
      inputs.emplace_back();
    } else {
      need(name);  // refuses it
      return list_missing(node);
    }
  }
  if (function) return import_call(node, *function, inputs);

  const auto takes = [&](const Value& value) {
    if (handler->takes == Takes::anything) return true;
    return value.is_tensor() && (handler->takes == Takes::text || value.type() != ElementType::string);
  };
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i] && !takes(*inputs[i]))
      return state_.refusals.unsupported(
          text(node.text(), ": input ", i, ": found ", inputs[i]->text(), ", expected a tensor of numbers"));
  bool symbolic = false;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i]) continue;
    symbolic = symbolic || inputs[i]->symbols();
    if (inputs[i]->shape().is_named() && !takes_named_axes(handler->name))
      return state_.refusals.unsupported(text(node.text(), ": input ", i, ": found ", inputs[i]->text(),
                                              ", expected fixed extents. Give ",
                                              "these extents numbers instead of bounds"));
  }
  ++state_.imported_nodes;
  const std::uint64_t lacking = state_.refusals.mark().lacking;
  OpContext context(node, opset_, std::move(inputs), state_.mover, *this, bindings_);
  // Operators without inputs, such as Constant, say themselves that their result is known.
  const bool folded =
      symbolic ? fold_symbolic(context)
               : handler->fold && context.has(0) && context.all_foldable() && handler->fold(context);
  if (!folded && !context.failure()) import_with_unsigned(context, *handler);
  if (context.failure()) {
    state_.refusals.keep(*context.failure());
    // A body that was not reached. Inside of a body the outer node may still find another way.
    if (!outer_ && state_.refusals.mark().lacking == lacking) list_missing_inside(node);
    return;
  }
  if (const auto& why_float = context.why_float()) state_.keep_quantised(node, *why_float);
  if (!context.stopped()) keep_outputs(node, context.outputs());
}

void GraphImporter::keep_outputs(const Node& node, std::span<const Value> outputs) {
  for (std::size_t i = 0; i < node.outputs.size() && i < outputs.size(); ++i) {
    if (node.outputs[i].empty()) continue;
    const Value& value = outputs[i];
    if (!value.is_tensor()) {
      give(node.outputs[i], value);
      continue;
    }
    if (value.type() == ElementType::undefined) {
      names_[node.outputs[i]].unmade_by = &node;
      continue;
    }
    if (!value.host() && !value.symbols()) {
      const Tensor tensor = value.tensor();
      if (!tensor.ok())
        return state_.refusals.keep(
            make_error(tensor.error().code, text(node.text(), ": ", tensor.error().message)));
    }
    const std::int64_t symbols = value.symbols() ? size_of(*value.symbols()) : 0;
    if (symbols > kFreeSymbolSize && !state_.mover.may_make(symbols - kFreeSymbolSize))
      return state_.refusals.unsupported(
          text(node.text(), ": more numbers that follow from extents than one model may have"));
    if (auto shape = checked_shape(value.shape().extents()); !shape)
      return state_.refusals.keep(
          make_error(shape.error().code,
                     text(node.text(), ": output ", value.shape().text(), ": ", shape.error().message)));
    give(node.outputs[i], value);
  }
}

// A body without nodes asks this too, since what is made of its outputs counts as well.
bool GraphImporter::may_grow(const Node& node) {
  if (state_.may_grow()) return true;
  state_.refusals.end(text(node.text(), ": more operations before it than the ", state_.most_nodes,
                           " that a file of this size may have"));
  return false;
}

// A graph is imported once for free. What is imported again is counted, nested bodies included.
bool GraphImporter::may_repeat(const Node& node, const Graph& body) {
  BodyFacts& facts = state_.facts_of(body);
  if (!may_grow(node)) return false;
  if (body.outputs.size() > kMaxNodeNames) {
    state_.refusals.unsupported(text(node.text(), ": found a body of ", amount(body.outputs.size(), "output"),
                                     ", expected at most ", kMaxNodeNames));
    return false;
  }
  if (state_.depth >= kMaxNesting) {
    state_.refusals.unsupported(
        text(node.text(), ": found more than ", kMaxNesting, " bodies and calls inside of each other"));
    return false;
  }
  if (facts.imported && !state_.mover.may_make(kOperationsPerPart * facts.parts)) {
    state_.refusals.unsupported(text(node.text(), ": more repetitions of its body than one model may have"));
    return false;
  }
  facts.imported = true;
  return true;
}

std::optional<std::vector<Value>> GraphImporter::run(const Node& node, std::span<const Input> inputs,
                                                     std::size_t most_outputs) {
  const Refusals::Inside inside(state_.refusals, node, graph_);
  const auto refused = [&](const Error& error) {
    state_.refusals.keep(error);
    return std::nullopt;
  };
  if (auto checked = check_names(); !checked) return refused(checked.error());
  for (std::size_t i = 0; i < graph_.inputs.size(); ++i) {
    if (i < inputs.size() && inputs[i])
      give(graph_.inputs[i].name, *inputs[i]);
    else
      names_[graph_.inputs[i].name].is_absent = true;
  }
  for (const TensorData& data : graph_.initializers) {
    auto value = state_.mover.held(data);
    if (!value) return refused(value.error());
    give(data.name, *value);
  }
  if (auto imported = import_nodes(); !imported) return refused(imported.error());
  std::vector<Value> outputs;
  for (const ValueInfo& output : std::span(graph_.outputs).first(most_outputs)) {
    const Value* value = need(output.name);
    if (!value) return std::nullopt;  // refused already
    outputs.push_back(*value);
  }
  return outputs;
}

std::optional<std::vector<Value>> GraphImporter::import_body(const Node& node, const Graph& body,
                                                             std::span<const Value> inputs) {
  if (!may_repeat(node, body)) return std::nullopt;
  if (inputs.size() != body.inputs.size()) {
    state_.refusals.keep(bad_graph(text(node.text(), ": the body has ", amount(body.inputs.size(), "input"),
                                        ", expected ", inputs.size())));
    return std::nullopt;
  }
  GraphImporter inner(state_, body, opset_, this, bindings_);
  ++state_.depth;
  const std::vector<Input> given(inputs.begin(), inputs.end());
  auto outputs = inner.run(node, given, body.outputs.size());
  --state_.depth;
  return outputs;
}

void GraphImporter::import_call(const Node& node, const Function& function, std::span<const Input> inputs) {
  if (!may_repeat(node, function.graph)) return;
  if (inputs.size() > function.graph.inputs.size() || node.outputs.size() > function.graph.outputs.size())
    return state_.refusals.keep(
        bad_graph(text(node.text(), ": found ", amount(inputs.size(), "input"), " and ",
                       amount(node.outputs.size(), "output"), ", expected at most ",
                       function.graph.inputs.size(), " and ", function.graph.outputs.size())));
  Bindings bindings{{}, state_.defaults_of(function)};
  for (const Attribute& attribute : node.attributes) {
    const Attribute* bound = resolved(&attribute, bindings_);
    if (bound) bindings.given[attribute.name] = bound;
  }
  GraphImporter inner(state_, function.graph, function.opset > 0 ? function.opset : opset_, nullptr,
                      &bindings);
  ++state_.depth;
  const auto outputs = inner.run(node, inputs, node.outputs.size());
  --state_.depth;
  if (outputs) keep_outputs(node, *outputs);
}

}  // namespace imprint::onnx

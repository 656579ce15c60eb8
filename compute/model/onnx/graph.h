#pragma once
// Private: the import of one graph of a model: its own, the body of a control operator, or a function.

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compute/base/name_hash.h"
#include "compute/model/onnx/import.h"
#include "compute/model/onnx/op.h"

namespace imprint::onnx {

inline constexpr std::size_t kMaxListed = 64;  // names and refusals in one message

// "Loop 'decode', body: ". Of a function's graph: "MyLayer 'first', function: ".
std::string body_text(const Node& node, const Graph& body);

// All that one import refuses, over all its graphs. The first wrong thing is kept, and up to kMaxListed that
// are unsupported.
class Refusals {
 public:
  // Nodes are imported until one is wrong, or too many are unsupported for a message. From then on only
  // missing operators are listed, so that refused nodes cost nothing.
  bool goes_on() const { return !wrong_ && unsupported_.size() < kMaxListed; }
  // While it lives, refusals name the body of the node that they are in: "Loop 'decode', body: ...".
  class Inside {
   public:
    Inside(Refusals& refusals, const Node& node, const Graph& body) : refusals_(refusals) {
      refusals_.inside_.emplace_back(&node, &body);
    }
    ~Inside() { refusals_.inside_.pop_back(); }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

   private:
    Refusals& refusals_;
  };
  void keep(const Error& error);
  void unsupported(const std::string& what) { unsupported_.push_back(path() + what); }
  void lacks(const Node& node);       // its operator
  void end(const std::string& what);  // as unsupported, and no further node is imported
  // All in one message, or nothing.
  std::optional<Error> error() const;

  Bodies::Mark mark() const { return {unsupported_.size(), lacking_count_, wrong_.has_value()}; }
  bool forget_since(const Bodies::Mark& mark);

 private:
  std::string path() const;  // of the innermost body; nothing when messages are cut anyway

  std::vector<std::pair<const Node*, const Graph*>> inside_;  // bodies, the outermost first
  std::vector<std::string> unsupported_;
  std::optional<Error> wrong_;
  std::map<std::string, std::uint64_t> lacking_;
  std::uint64_t lacking_count_ = 0;
};

// Facts about a graph inside of a node, found once per import.
struct BodyFacts {
  std::vector<std::string_view> captured;  // names from outside that its nodes read, nested bodies included
  std::int64_t parts = 0;  // nodes, names and attributes, nested bodies included; long names are several
  bool imported = false;
};

struct ImportState {
  const Model& model;
  Mover mover;
  Refusals refusals;
  std::map<const Graph*, BodyFacts> bodies;
  std::map<std::pair<std::string_view, std::string_view>, const Function*> functions;  // domain, name
  std::map<const Function*, AttributeMap> defaults;
  int depth = 0;                                   // of bodies and functions inside of each other
  std::uint64_t most_nodes = 0, nodes_before = 0;  // of the tensors' graph
  std::uint64_t names_before = 0;                  // of axes
  std::uint64_t imported_nodes = 0;                // each counts as one of the tensors' graph
  QuantisedProducts quantised = {};

  void keep_quantised(const Node& node, const std::string& why_float);
  // Whether the graph is still small enough for the file.
  bool may_grow() const;
  // Whether there are still few names of axes.
  bool may_name() const;
  // nullptr when the model has no such function.
  const Function* function_of(const Node& node) const;
  BodyFacts& facts_of(const Graph& body);
  const AttributeMap& defaults_of(const Function& function);  // made once: calls are many
};

// All that an import knows of a name in one graph.
struct NameFacts {
  static constexpr std::size_t kNoMaker = SIZE_MAX;

  bool is_made = false;          // by an initializer, an input or a node
  bool is_absent = false;        // an input of a function that a call leaves out
  std::size_t maker = kNoMaker;  // node
  std::optional<Value> value;
  const Node* unmade_by = nullptr;  // the node does not make this output
};

class GraphImporter : public Bodies {
 public:
  // outer: the graph around a body. bindings: the attributes of the function that the graph belongs to.
  GraphImporter(ImportState& state, const Graph& graph, std::int64_t opset, const GraphImporter* outer,
                const Bindings* bindings)
      : state_(state), graph_(graph), opset_(opset), outer_(outer), bindings_(bindings) {}

  // Each name is made once, and each name that is used is made.
  Result<> check_names();
  // The first value of a name stays.
  void give(std::string_view name, Value value) {
    std::optional<Value>& own = names_[name].value;
    if (!own) own = std::move(value);
  }
  // Imports the nodes that outputs depend on.
  Result<> import_nodes();
  const Value* find(std::string_view name) const;  // nullptr for a value that is refused
  // The same, for a value that is needed: refuses an output that its operator does not make.
  const Value* need(std::string_view name) const;

  // ---- Bodies ----
  std::optional<std::vector<Value>> import_body(const Node& node, const Graph& body,
                                                std::span<const Value> inputs) override;
  Mark mark() const override { return state_.refusals.mark(); }
  bool forget_since(const Mark& mark) override { return state_.refusals.forget_since(mark); }

 private:
  using Input = std::optional<Value>;

  // The facts of a name that is made here; nullptr when it is made already.
  NameFacts* make(std::string_view name) {
    NameFacts& facts = names_[name];
    return std::exchange(facts.is_made, true) ? nullptr : &facts;
  }
  std::size_t maker_of(std::string_view name) const;  // kNoMaker: it is not a node of this graph
  // The facts of the innermost graph for which holds(facts), or nullptr.
  template <class Holds>
  const NameFacts* innermost(std::string_view name, Holds holds) const {
    for (const GraphImporter* at = this; at; at = at->outer_)
      if (const NameFacts* found = at->names_.find(name); found && holds(*found)) return found;
    return nullptr;
  }
  Result<std::vector<std::size_t>> ordered_nodes() const;
  // Calls visit(name) for each value that the node reads, those of its bodies included.
  template <class Visit>
  void for_each_read(const Node& node, Visit visit) const;
  // The first outputs of a body or a function.
  std::optional<std::vector<Value>> run(const Node& node, std::span<const Input> inputs,
                                        std::size_t most_outputs);
  bool may_grow(const Node& node);  // else refuses the node
  void import_node(const Node& node);
  void import_call(const Node& node, const Function& function, std::span<const Input> inputs);
  void keep_outputs(const Node& node, std::span<const Value> outputs);
  void list_missing(const Node& node);
  void list_missing_inside(const Node& node);  // in its bodies
  bool may_repeat(const Node& node, const Graph& body);

  ImportState& state_;
  const Graph& graph_;
  std::int64_t opset_;
  const GraphImporter* outer_;
  const Bindings* bindings_;
  NameMap<NameFacts> names_;
};

}  // namespace imprint::onnx

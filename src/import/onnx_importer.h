// Private to import: the walk over a graph's nodes (onnx_graph.cc) and over subgraphs inside nodes
// (onnx_branch.cc, onnx_loop.cc). One Importer imports one model once.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "import/fold.h"
#include "import/onnx_model.h"
#include "import/onnx_ops.h"

namespace heddle::import {

// The values that nodes of one graph or function body can see.
struct Scope {
  std::unordered_map<std::string_view, Value*> values;  // null: an optional input left out
  const Scope* outer = nullptr;                         // values that a branch captures
  std::vector<std::string_view> results;                // names read at the end
  const Opsets* opsets = nullptr;
  const std::map<std::string_view, const proto::Attribute*>* attributes = nullptr;  // of a call

  Value* find(std::string_view name, bool& known) const {
    for (const Scope* scope = this; scope != nullptr; scope = scope->outer) {
      const auto found = scope->values.find(name);
      if (found == scope->values.end()) continue;
      known = true;
      return found->second;
    }
    known = false;
    return nullptr;
  }
};

// A subgraph of a node as a separate computation with one parameter, a tuple. The outer values that
// it reads are passed after the tuple's other elements.
struct Region {
  hlo::Computation* computation = nullptr;
  Scope scope;
  std::vector<Value*> captured;  // outer values, in the order of the tuple's last elements
  Instr* parameter = nullptr;
};

// Loop and Scan, in one form: loop-carried values, inputs that are sliced per trip, outputs that
// collect one slice per trip.
struct LoopForm {
  struct Slices {
    int64_t axis = 0;
    bool reverse = false;
  };
  const proto::Graph* body = nullptr;
  bool counts = false;                // Loop: the body has an iteration number and a condition
  Value* trips = nullptr;             // Loop: M; null: no bound
  Value* condition = nullptr;         // Loop: null is true
  std::optional<int64_t> trip_count;  // if known
  std::vector<Value*> carried, scanned;
  std::vector<Slices> inputs, outputs;  // of `scanned`, and of the collected outputs
};

// Index of the first carried value among the body's inputs.
inline size_t carried_at(const LoopForm& form) { return form.counts ? 2 : 0; }
// A value that is there must be one bool.
void check_condition(const proto::Node& node, const Value* value, const char* whose);
// Of a condition; a missing value counts as true.
std::optional<bool> known_bool(const Value* value);
int64_t wrap_axis(const proto::Node& node, int64_t axis, int64_t rank);
Literal scalar_s64(int64_t value);
Literal true_literal();

// During its lifetime, demands are those of a subgraph; afterwards those of the outer graph again.
class InnerDemands {
 public:
  explicit InnerDemands(std::vector<IndexDemand>& demands)
      : demands_(demands), outer_(std::exchange(demands, {})) {}
  InnerDemands(const InnerDemands&) = delete;
  ~InnerDemands() { demands_ = std::move(outer_); }

 private:
  std::vector<IndexDemand>& demands_;
  std::vector<IndexDemand> outer_;
};

class Importer {
 public:
  Importer(const ModelFacts& facts, const Options& options, TensorSource& source, Imported& result);
  void run(const std::vector<Input>& inputs);
  // The model inputs that a value depends on, as far as its instruction shows.
  std::vector<std::string> inputs_behind(const Value& value) const;
  bool is_input(const Value& value) const;
  Type type_of_input(const std::string& name) const;  // for inputs that are not bound
  // All inputs, including those that Options::values binds; sequences by element.
  const std::vector<std::string>& all_inputs() const { return all_inputs_; }
  // For an import that ended because this value is unknown: cuts the module to compute it, together
  // with the values that later nodes read. False: the value has no name.
  bool cut_to(const Value& value);

 private:
  using Inputs = std::vector<Value*>;

  void run_graph(const proto::Graph& graph, Scope& scope);
  void run_nodes(const std::vector<proto::Node>& nodes, Scope& scope);
  void run_node(const proto::Node& node, Scope& scope);
  void run_structural(const proto::Node& node, Scope& scope, const Inputs& inputs);
  void run_handler(const proto::Node& node, Scope& scope, const Inputs& inputs);
  void run_function(const proto::Function& function, const proto::Node& node, Scope& scope,
                    const Inputs& inputs);
  Inputs inputs_of(const proto::Node& node, const Scope& scope) const;
  proto::Node resolve(const proto::Node& node, const Scope& scope) const;
  bool small_and_known(const Inputs& inputs) const;
  std::optional<Outputs> fold_node(const OpEntry& entry, const proto::Node& node, int64_t opset,
                                   const Inputs& inputs);
  // `few`: are_few_extents.
  std::optional<Outputs> fold_as_given(const OpEntry& entry, const proto::Node& node, int64_t opset,
                                       const Inputs& inputs, bool few);
  std::shared_ptr<const std::vector<Literal>> fold_trips(const OpEntry& entry,
                                                         const proto::Node& node, int64_t opset,
                                                         const Inputs& inputs);
  Outputs emit_node(const OpEntry& entry, const proto::Node& node, int64_t opset,
                    const Inputs& inputs, hlo::NodeNames& names);
  void finish_instrs(size_t first, const proto::Node& node, const hlo::NodeNames& names);
  // onnx_extents.cc. The outputs, folded, as they would be for other extents (Value::elsewhere).
  void fold_elsewhere(const OpEntry& entry, const proto::Node& node, int64_t opset,
                      const Inputs& inputs, Outputs& outputs);
  void find_bounded(const Value& input);
  void name_extents();  // onnx_named_extents.cc
  bool set_computed_extents();
  bool makes_open_rows(const proto::Node& node, const Inputs& inputs) const;
  // Whether folded values are to be computed by the graph, too, so that they are right for all
  // extents where they are read as values: floats, and what comes of them.
  bool follows_extents(const Inputs& inputs, const Outputs& folded) const;
  // Whether a few numbers follow from extents, however large these are: the pads of a picture.
  static bool are_few_extents(const Inputs& inputs);
  static void compute_too(const Outputs& computed, Outputs& folded);
  // What a node that is not folded makes of numbers of counted rows.
  void check_numbers_of_rows(const proto::Node& node, const Inputs& inputs, const Outputs& outputs);
  bool check_array_of_rows(const Value& value);
  void check_result_of_rows(const Value& value);
  void check_branch_of_rows(const proto::Node& node, const Value& condition);
  // onnx_names.cc
  hlo::NodeNames name_of(const proto::Node& node) const;
  std::string first_name_of(const proto::Node& node) const;
  // Names the instructions from `first` on, made for a node with subgraphs.
  void name_structural(size_t first, const proto::Node& node, Scope& scope, const Inputs& inputs);
  void define(std::string_view name, Value* value, Scope& scope, const std::string& where);
  // onnx_stages.cc
  void name_computed(const std::string& name, Value& value);
  void carry_what_is_read(std::span<const proto::Node> rest, const Scope& scope, Failure& failure);
  void define_outputs(const proto::Node& node, Outputs outputs, Scope& scope,
                      const hlo::NodeNames& names);
  Value* add_value(Value value) { return &values_.emplace_back(std::move(value)); }
  Value* add_output(Output output, std::string_view name);
  Value* known_value(Literal literal, std::string_view name);
  Value* instr_value(Instr* instr, std::string_view name);
  Value* output_value(const proto::Graph& graph, size_t i, const Scope& scope) const;
  Value* parameter_value(hlo::Builder& builder, std::string_view name, const Shape& shape,
                         bool text = false);
  void count_node();

  // The demands on values of `into_`, reduced, without those on the model's inputs; those that
  // always hold are dropped.
  std::vector<IndexDemand> close_demands();
  // Takes over the demands of a subgraph, which are elements of its result from `first` on.
  void take_over(std::vector<IndexDemand> inner, Instr* result, int64_t first);
  void check_demands(std::vector<Instr*>& outputs);  // for the entry: appends the hidden outputs

  // onnx_branch.cc
  void run_if(const proto::Node& node, Scope& scope, const Inputs& inputs);
  void run_in_place(const proto::Graph& branch, const proto::Node& node, Scope& scope);
  void run_both(const proto::Node& node, Scope& scope, Value* condition,
                const proto::Graph& on_true, const proto::Graph& on_false);
  // Opens a region whose parameter begins with `first`; captures the outer values that the graph
  // uses.
  std::unique_ptr<Region> open_region(const proto::Graph& graph, const Scope& scope,
                                      std::string_view name, const std::vector<Shape>& first,
                                      const std::vector<Value*>& also);
  std::vector<Value*> free_values(const proto::Graph& graph, const Scope& scope,
                                  std::vector<std::string_view>& names) const;
  Value* inside(Value* outer, const std::unordered_map<const Value*, Value*>& captured);

  // onnx_flex_attention.cc
  void run_flex_attention(const proto::Node& node, Scope& scope, const Inputs& inputs);

  // onnx_loop.cc
  void run_loop(const proto::Node& node, Scope& scope, const Inputs& inputs);
  void run_scan(const proto::Node& node, Scope& scope, const Inputs& inputs);
  void run_old_scan(const proto::Node& node, Scope& scope, const Inputs& inputs);
  void run_sequence_map(const proto::Node& node, Scope& scope, const Inputs& inputs);
  std::vector<Value*> run_loop_form(const proto::Node& node, const LoopForm& form, Scope& scope);
  // onnx_ragged.cc. Of a loop that only appends to sequences, which are only joined: all of what it
  // appends. Nothing: it has another form.
  std::optional<std::vector<Value*>> run_ragged(const proto::Node& node, const LoopForm& form,
                                                Scope& scope);
  std::vector<Value*> unroll(const proto::Node& node, const LoopForm& form, Scope& scope);
  // onnx_while.cc. Without `dynamic_condition` the body's condition must be known to stay true; if
  // it is not, nothing is emitted and `needs_condition` is set.
  struct While;
  std::vector<Value*> emit_while(const proto::Node& node, const LoopForm& form, Scope& scope,
                                 bool dynamic_condition, bool& needs_condition);
  Value* slice_of(Value* value, const LoopForm::Slices& slices, int64_t trip,
                  const proto::Node& node);
  Value* stack(const std::vector<Value*>& slices, const LoopForm::Slices& how,
               const proto::Node& node);
  // Runs one operator on values, as if it were a node with the name of `caller`.
  Value* apply(std::string_view op_type, const Inputs& inputs,
               const std::vector<std::pair<std::string_view, int64_t>>& attributes,
               const proto::Node& caller);

  const ModelFacts& facts_;
  const Options& options_;
  TensorSource& source_;
  Imported& result_;
  Limits limits_;
  NamedExtents named_;
  FoldBudget budget_;
  std::deque<Value> values_;          // a deque: addresses stay valid
  hlo::Computation* into_ = nullptr;  // where instructions are added
  hlo::Computation* entry_ = nullptr;
  std::vector<IndexDemand> demands_;  // on values of `into_`
  int64_t nodes_ = 0;
  std::vector<std::string> all_inputs_;
  Decisions decisions_;
  // What NonZero has found in a value, by computation: it counts once, however often it is asked
  // for.
  std::map<std::pair<const Value*, const hlo::Computation*>, Value*> found_;
  std::map<std::string, const Value*> to_carry_;  // by key, at the point where the import ended
  std::string caller_;  // name of the function call being expanded, with `/`; else empty
  int depth_ = 0;       // nested graphs
  std::span<const proto::Node> behind_;  // the nodes after the one being imported, in its graph
};

// Whether the node's inputs are strings that it only moves; fails if it does not accept strings.
// Its outputs of the ids' type are strings then (onnx_text.cc).
bool moves_texts(const OpEntry& entry, const proto::Node& node, const std::vector<Value*>& inputs);
void mark_texts(Outputs& outputs);
// The names of the nodes folded at import into these values (null: none).
hlo::NodeNames nodes_of(const std::vector<Value*>& values);
// Names of inputs that are not read directly because the node reads through them: a reshape of a
// reshape.
hlo::NodeNames nodes_read_through(const std::vector<Value*>& inputs,
                                  const hlo::Computation& computation, size_t first,
                                  const Outputs& outputs);
// Adds names to the instruction that makes the value, or, if it is known or given, to its readers.
void add_nodes(Value& value, const hlo::NodeNames& names);
// Names the computation's unnamed instructions from number `first` on, and those of the loops and
// branches that they run.
void name_new(const hlo::Computation& computation, size_t first, const hlo::NodeNames& names);
// The attribute's graph; fails if it is missing.
const proto::Graph& graph_attr(const proto::Node& node, std::string_view name);
// The outer values that nodes, including their subgraphs, read; in order of use.
std::vector<std::string_view> names_read(std::span<const proto::Node> nodes);
// Whether the Importer itself handles the node: it has subgraphs.
bool is_structural(const proto::Node& node);

}  // namespace heddle::import

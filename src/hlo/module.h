// Module, Computation, Instr: the graph IR. Read this header first.
//
// A module holds computations; one is the entry. A computation holds instructions in an order in
// which every operand comes before its users; one is the root, whose value is the result. An
// instruction has one value (possibly a tuple). Values are immutable. Floating point is IEEE,
// round to nearest even, no flushing of subnormals; integer arithmetic wraps; division of integers
// by zero gives -1 (all ones), remainder gives the dividend; out-of-range slice starts are clamped.
// On pred, add is or, multiply is and, maximum is or, minimum is and.
//
// Invariants (verify.h names them by number):
//  1. An instruction's operands, control predecessors and users belong to its computation.
//  2. Every operand comes before its user in Computation::instrs().
//  3. users() lists each user once, and exactly those that have it as operand.
//  4. Operand and called-computation counts fit the opcode's row; attrs() holds its row's struct.
//  5. shape() is compatible with what shape inference gives (or may be declared freely, for the
//     opcodes where inference says so).
//  6. Parameters are numbered 0..n-1, each once, one per number.
//  7. Called computations belong to the module; the call graph has no cycle.
//  8. Called computations have the parameters and the result that their caller's opcode requires.
//  9. Names are unique: of instructions in a computation, of computations in a module.
// 10. The root belongs to the computation; the entry to the module.
// 11. input_output_alias names existing leaves of equal shape, no output twice.
// 12. Control predecessors do not make a cycle with data dependencies.
// 13. states are the last parameters and results of the entry (state_arrays.h).
// 14. symbols name parameters s32[] of the entry, and dimensions of its parameters.
//
// Ownership: the module owns computations, a computation owns its instructions; pointers stay valid
// until the thing is removed. Not thread-safe; concurrent reads are fine.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/check.h"
#include "hlo/attrs.h"
#include "hlo/facts.h"
#include "hlo/node_names.h"
#include "hlo/opcode.h"
#include "hlo/symbol.h"
#include "tensor/shape.h"

namespace heddle::hlo {

class Computation;
class Module;
using tensor::Literal;
using tensor::Shape;
using tensor::Type;

// Attributes that are kept but have no meaning to us: metadata (except its op_name: Instr::nodes),
// sharding, backend_config, frontend_attributes, statistics, origin, …: key and text as written, in
// file order.
using Annotations = std::vector<std::pair<std::string, std::string>>;

class Instr {
 public:
  Opcode opcode() const { return opcode_; }
  const Shape& shape() const { return shape_; }
  const std::string& name() const { return name_; }  // without %
  // Unique over the module's life, grows with creation; ordered containers sort by it.
  int64_t id() const { return id_; }
  Computation* parent() const { return parent_; }

  const std::vector<Instr*>& operands() const { return operands_; }
  Instr* operand(size_t i) const {
    HEDDLE_CHECK(i < operands_.size(), "{} has no operand {}", name_, i);
    return operands_[i];
  }
  const std::vector<Instr*>& users() const { return users_; }
  const std::vector<Instr*>& control_predecessors() const { return control_predecessors_; }
  const std::vector<Instr*>& control_successors() const { return control_successors_; }
  // reduce, map, sort, …: {to_apply}; while: {condition, body}; conditional: the branches (true
  // first); fusion, async-start: {calls}; select-and-scatter: {select, scatter}; custom-call: any.
  const std::vector<Computation*>& called() const { return called_; }

  const Attrs& attrs() const { return attrs_; }
  template <typename T>
  const T& attrs_as() const {
    const T* attrs = std::get_if<T>(&attrs_);
    HEDDLE_CHECK(attrs, "{} ({}) has other attributes", name_, opcode_text(opcode_));
    return *attrs;
  }
  template <typename T>
  T& mutable_attrs_as() {
    return const_cast<T&>(std::as_const(*this).attrs_as<T>());
  }
  Annotations& annotations() { return annotations_; }
  const Annotations& annotations() const { return annotations_; }
  Facts& facts() { return facts_; }
  const Facts& facts() const { return facts_; }
  // The model's own nodes whose work it does. Called computations have their own names: NodeList.
  const NodeNames& nodes() const { return nodes_; }
  void add_nodes(const NodeNames& names) { nodes_.add(names); }
  // Replaces annotations, facts and nodes by those of `from`, of which this is a copy.
  void copy_notes(const Instr& from) {
    annotations_ = from.annotations_;
    facts_ = from.facts_;
    nodes_ = from.nodes_;
  }
  // For a replacement of `from`: adds its nodes, and its annotations and facts where this has none.
  void add_notes(const Instr& from) {
    if (annotations_.empty()) annotations_ = from.annotations_;
    if (facts_ == Facts{}) facts_ = from.facts_;
    nodes_.add(from.nodes_);
  }

  // Shorthands.
  bool is(Opcode opcode) const { return opcode_ == opcode; }
  const Ints& dimensions() const { return attrs_as<DimensionsAttrs>().dimensions; }
  const Literal& literal() const { return attrs_as<ConstantAttrs>().value; }
  int64_t parameter_number() const { return attrs_as<ParameterAttrs>().number; }
  int64_t tuple_index() const { return attrs_as<TupleIndexAttrs>().index; }

  void set_shape(Shape shape) { shape_ = std::move(shape); }

 private:
  friend class Computation;
  friend class Module;
  friend struct InstrTestPeer;  // breaks invariants on purpose (verify_test.cc)
  bool has_user(const Instr* user) const;
  void add_user(Instr* user);
  void remove_user(Instr* user);
  Opcode opcode_ = Opcode::parameter;
  Shape shape_;
  std::string name_;
  int64_t id_ = 0;
  Computation* parent_ = nullptr;
  std::vector<Instr*> operands_, users_, control_predecessors_, control_successors_;
  // Index of each user in users_; built only for long lists, so that removal stays constant time.
  std::unique_ptr<std::unordered_map<const Instr*, size_t>> user_places_;
  std::vector<Computation*> called_;
  Attrs attrs_;
  Annotations annotations_;
  Facts facts_;
  NodeNames nodes_;
  size_t place_ = 0, storage_place_ = 0;  // in Computation::order_ and storage_
};

// Whether it does more than compute a value: by the opcode's trait (custom-call: its attribute), or
// because a called computation has an effect. Collectives count; reading the partition or replica
// id does not.
bool has_effect(const Instr& instr);

class Computation {
 public:
  const std::string& name() const { return name_; }
  Module* module() const { return module_; }
  int64_t id() const { return id_; }
  // In order: operands before users (invariant 2). Pending removals and repairs of the order are
  // done here, in one go, so that a sequence of mutations does not cost a pass over the computation
  // each. Do not hold the reference over a mutation: copy the vector to mutate while walking. (A
  // cycle leaves the order unrepaired; the verifier reports it.)
  const std::vector<Instr*>& instrs() const {
    if (unsettled_.load(std::memory_order_acquire)) settle();
    return order_;
  }
  Instr* root() const { return root_; }
  const std::vector<Instr*>& parameters() const { return parameters_; }  // by number
  Instr* find(std::string_view name) const;                              // or nullptr

  // Appends an instruction. `name` is made unique ("add", "add.1"); empty: the opcode's text.
  // A parameter takes its number from `attrs`. No inference: that is Builder's work (builder.h).
  // `attrs` is the struct of the opcode's row; left out, that struct with its defaults.
  Instr* add(Opcode opcode, Shape shape, std::vector<Instr*> operands, Attrs attrs = NoAttrs{},
             std::vector<Computation*> called = {}, std::string_view name = {});
  // Every use of `from` (operands, control edges, the root) becomes `to`; shapes must be
  // compatible. The order is repaired if `to` comes after a user. If `to` itself uses `from`, that
  // use stays. Control edges that would make a cycle with `to` are dropped. The node names of
  // `from`, and of instructions that become dead with it, go to `to` and to the new unnamed
  // instructions that it was built from; if `to` is a parameter or a constant, to the users.
  void replace_all_uses(Instr* from, Instr* to);
  // The same for one operand: names of instructions that become dead go to `user`, and its names to
  // the new unnamed instructions.
  void replace_operand(Instr* user, size_t i, Instr* to);
  void set_root(Instr* root);
  void set_called(Instr* instr, size_t i, Computation* to);
  void add_control_edge(Instr* before, Instr* after);
  // Precondition: no users, no control successors, not the root. Not for parameters:
  // remove_parameter.
  void remove(Instr* instr);
  // Removes an unused parameter; later ones move down by one number.
  void remove_parameter(int64_t number);
  void rename(Instr* instr, std::string_view name);  // made unique
  // Removes instructions that root, effects and control edges do not need; parameters stay. Returns
  // the count.
  int64_t remove_dead();
  // Restores invariant 2 by a stable topological sort; CHECKs that there is no cycle.
  void sort();
  // Moves instructions into the given order (a permutation that keeps invariant 2).
  void reorder(std::vector<Instr*> order);

  std::string execution_thread;  // empty: main

 private:
  friend class Module;
  friend struct InstrTestPeer;
  Instr* store(std::unique_ptr<Instr> instr);
  void drop(Instr* instr);  // unlinked already: frees it
  void settle() const;
  void compact_order() const;
  bool sort_order() const;  // false: there is a cycle
  void mark_unsorted_if(bool out_of_order);
  void unlink_operands(Instr* instr);
  void replace_control_edges(Instr* from, Instr* to);
  void hand_over_nodes(const Instr* from, Instr* to, const std::vector<Instr*>& users);
  NodeNames nodes_of_dying(const Instr* from) const;
  void name_new(Instr* made, const NodeNames& names, int64_t newer_than);
  void insert_parameter(Instr* instr);
  void copy_instrs(const Computation& from, bool keep_ids,
                   const std::unordered_map<const Computation*, Computation*>& computations);

  std::string name_;
  int64_t id_ = 0;
  Module* module_ = nullptr;
  int64_t callers_ = 0;  // uses in Instr::called_ of the whole module
  std::vector<std::unique_ptr<Instr>> storage_;
  // Removed instructions leave a null here until settle(); `unsettled_`: settle() has work to do,
  // `unsorted_`: it must also sort, not only drop nulls.
  mutable std::vector<Instr*> order_;
  mutable std::atomic<bool> unsettled_{false};
  mutable bool unsorted_ = false;
  mutable std::mutex settle_mutex_;
  std::vector<Instr*> parameters_;
  Instr* root_ = nullptr;
  std::unordered_map<std::string, Instr*> by_name_;
  std::unordered_map<std::string, int64_t> next_suffix_;
};

// One row of input_output_alias: output leaf, parameter number, parameter leaf.
struct Alias {
  Ints output_index;
  int64_t parameter = 0;
  Ints parameter_index;
  bool must = false;  // must-alias; else may-alias
  bool operator==(const Alias&) const = default;
};

class Module {
 public:
  explicit Module(std::string name) : name_(std::move(name)) {}
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  std::unique_ptr<Module> clone() const;  // deep; same names, ids and order

  const std::string& name() const { return name_; }
  void set_name(std::string name) { name_ = std::move(name); }
  Computation* entry() const { return entry_; }
  void set_entry(Computation* computation) { entry_ = computation; }
  // In no particular order; post_order() has callees before callers.
  const std::vector<std::unique_ptr<Computation>>& computations() const { return computations_; }
  std::vector<Computation*> post_order() const;  // callees first, entry last; unreachable ones too
  Computation* find(std::string_view name) const;

  Computation* add_computation(std::string_view name);  // made unique
  // Deep copy of a computation (of this or another module) and of those it calls, into this module.
  Computation* clone_computation(const Computation& from, std::string_view name = {});
  void remove_computation(Computation* computation);  // must have no callers
  int64_t remove_dead_computations();                 // those the entry does not reach

  bool is_scheduled = false;
  std::vector<Alias> input_output_alias;
  // entry_computation_layout as written in the header, parameters and result; absent: from shapes.
  std::optional<std::pair<std::vector<Shape>, Shape>> entry_layout;
  int64_t replica_count = 1, num_partitions = 1;
  // For each state array (state_arrays.h) the bits of its elements in the first run.
  std::vector<std::vector<uint64_t>> states;
  std::vector<Symbol> symbols;  // bounded dimensions of the entry's parameters
  Annotations header;           // other header attributes, kept as written

 private:
  friend class Computation;
  friend struct InstrTestPeer;
  std::string name_;
  std::vector<std::unique_ptr<Computation>> computations_;
  Computation* entry_ = nullptr;
  int64_t next_id_ = 0;
  std::unordered_map<std::string, Computation*> by_name_;
  std::unordered_map<std::string, int64_t> next_suffix_;
};

}  // namespace heddle::hlo

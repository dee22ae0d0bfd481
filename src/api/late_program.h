// Private to late: the tree of decisions of a program whose shapes are known late (late.h).
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "api/computed_extents.h"
#include "api/late.h"
#include "api/shared_weights.h"
#include "api/size_buckets.h"
#include "api/small_stage.h"
#include "runtime/state_arrays.h"

namespace heddle::api {

// A stage, or the program at a leaf.
struct Part {
  std::unique_ptr<Model> model;
  std::shared_ptr<Program> program;
  std::vector<PartInput> inputs;
  std::string key;              // of a stage: what its value is called
  bool may_be_guessed = false;  // the value: it is a count without a bound
  SmallStage small = SmallStage::no;
  std::atomic<bool> is_interpreted = false;  // for being small
  std::atomic<int64_t> runs = 0;             // of an interpreted one
  CountOutputs counts;                       // of a leaf
  std::atomic<bool> kept = true;             // false: contexts are to let it go
  int64_t bytes = 0, last_use = 0;           // the use: of a leaf
};

// What the program at a leaf that is for several sizes is told, by symbol (bounded.h).
std::vector<int64_t> extents_of(const Part& part, const LateInputs& inputs);

struct Node {
  enum class Asks { nothing_yet, input, stage, program };
  Asks asks = Asks::nothing_yet;  // once it is something, it stays that
  int64_t input = 0;
  std::shared_ptr<Part> part;
  std::map<std::string, std::shared_ptr<Node>> next;  // by the bytes of the value
  std::weak_ptr<Node> before;
};

// By the stages on the way from the root.
struct Computed {
  std::map<std::string, tensor::Literal> decided;
  std::map<std::string, const tensor::Literal*> carried;
};

// What leads from a node to the next one.
std::string bytes_of(const tensor::Shape& shape, const void* data);
std::string text_of(const std::vector<tensor::Shape>& shapes);

class LateProgram : public Program, public std::enable_shared_from_this<LateProgram> {
 public:
  LateProgram(const Model& model, CompileOptions options, bool interpreted)
      : late_(model.late()),
        options_(std::move(options)),
        interpreted_(interpreted),
        is_unbound_(!model.unbound().empty()) {
    options_.consume_model = true;
    options_.background = false;
    options_.keep_prepared = false;  // of many programs they would drive out all others
    inputs_ = model.inputs();
    outputs_ = model.outputs();
    notes_ = model.notes();
    all_facts_.emplace_back();
    all_facts_.back().device = options_.device.empty() ? "cpu" : options_.device;
    all_facts_.back().compilations = 0;
    most_ = options_.keep_programs;
    most_bytes_ = options_.keep_memory_bytes;
  }
  Status begin();

  const Late& late() const { return *late_; }
  const ProgramFacts& facts() const override {
    const std::lock_guard lock(mutex_);
    return all_facts_.back();
  }
  const program::Program* compiled() const override {
    const std::lock_guard lock(mutex_);
    return first_ ? first_->program->compiled() : nullptr;
  }
  const std::vector<Port>& state_ports() const override {
    const std::lock_guard lock(mutex_);
    return first_ ? first_->program->state_ports() : state_ports_;
  }
  std::shared_ptr<runtime::StateArrays> states() const override { return states_; }
  Status save(const std::string& path) override {
    return user_error(
        "{}: its shapes are known when it runs, and a file holds what is compiled; make the values "
        "that decide them part of the model (--fix NAME), or bind its dimensions (--dim, --shape)",
        path);
  }
  Result<std::unique_ptr<Context>> make_context(
      std::shared_ptr<runtime::Cancellation> cancellation) override;

  // A count that was guessed was `count`: later programs are for so many, and more; of a very large
  // one, for exact counts. `wrong_for`: the shapes of a run that had more than was guessed.
  void guess(int64_t count, const std::string& wrong_for = {});
  // The node from which a run with these inputs walks: of their shapes (text_of), or of a bucket of
  // them. Adds to the inputs those that follow from them. Errors: none that the run would not have
  // with an exact program.
  Result<std::shared_ptr<Node>> root(LateInputs* inputs, const std::string& shapes);
  // Whether there is a way on from a node with this value.
  bool leads_on(const Node& node, const std::string& value) const {
    const std::lock_guard lock(mutex_);
    return node.next.contains(value);
  }
  // Whether runs of these shapes are to go by a guess from here on: a count that could be guessed
  // is decided at this node, and it was never this one.
  bool leaves_decided(const Node& node, const std::string& value, const std::string& shapes);
  // What it asks, and where its value leads. A node that asks nothing yet gets an import.
  // Where that fails, nothing is left of the way to it: what was asked for may be anything.
  Result<Node::Asks> ask(const std::shared_ptr<Node>& node, const LateInputs& inputs,
                         const Computed& computed) {
    Result<Node::Asks> asks = ask_or_make(node, inputs, computed);
    if (asks) return asks;
    const std::lock_guard lock(mutex_);
    if (node->asks == Node::Asks::nothing_yet) prune(node);
    return asks;
  }
  // Of a stage that was interpreted until now. Where that fails it stays interpreted.
  void compile_stage(const std::shared_ptr<Part>& part);
  std::shared_ptr<Program> program_of(const Part& part) const {
    const std::lock_guard lock(mutex_);
    return part.program;
  }
  std::shared_ptr<Node> next(const std::shared_ptr<Node>& node, const std::string& value) {
    const std::lock_guard lock(mutex_);
    return child(node, value);
  }
  void used(const std::shared_ptr<Part>& leaf) {
    const std::lock_guard lock(mutex_);
    leaf->last_use = ++uses_;
  }

 private:
  static std::shared_ptr<Node> child(const std::shared_ptr<Node>& node, const std::string& value) {
    std::shared_ptr<Node>& next = node->next[value];
    if (!next) {
      next = std::make_shared<Node>();
      next->before = node;
    }
    return next;
  }

  Result<std::shared_ptr<Part>> compile(import::Imported imported);
  struct Made {
    std::shared_ptr<Part> part;
    std::vector<import::BoundInput> bound;  // inputs whose values it is for
  };
  Result<Made> make(import::Options options);
  Result<Node::Asks> ask_or_make(const std::shared_ptr<Node>& node, const LateInputs& inputs,
                                 const Computed& computed);
  Result<std::shared_ptr<Part>> compile_bucket(const SizeBucket& bucket, int64_t guess,
                                               const LateInputs& inputs);
  void add_computed(LateInputs* inputs);
  std::shared_ptr<const ComputedExtents> computed_extents(const LateInputs& inputs);
  // Null: there is no such program.
  std::shared_ptr<Node> node_of(const SizeBucket& bucket, const LateInputs& inputs);
  void add_leaf(const std::shared_ptr<Node>& node);
  void drop_oldest();
  void prune(std::shared_ptr<Node> node);

  std::shared_ptr<const Late> late_;
  CompileOptions options_;
  bool interpreted_ = false, is_unbound_ = false;
  int64_t most_ = 0, most_bytes_ = 0;
  std::mutex making_;         // of parts: one at a time
  mutable std::mutex mutex_;  // of all below
  std::shared_ptr<Node> root_ = std::make_shared<Node>();
  std::vector<std::shared_ptr<Node>> leaves_;
  std::shared_ptr<Part> first_;  // stays, for who looks at it: compiled(), state_ports()
  int64_t uses_ = 0, bytes_ = 0, compilations_ = 0;
  // Of counts without a bound; 0: there are none, as far as is known; -1: they are too large to
  // be guessed.
  int64_t guess_ = 0;
  std::set<std::string> left_;  // shapes whose counts are not decided any more
  std::optional<SizeBuckets> sizes_;
  bool knows_computed_ = false;
  std::shared_ptr<const ComputedExtents> computed_;  // null: there are none
  SharedWeights shared_;                             // of `making_`
  std::shared_ptr<runtime::StateArrays> states_ = std::make_shared<runtime::StateArrays>();
  std::deque<ProgramFacts> all_facts_;  // who looks at one keeps it
};

}  // namespace heddle::api

// Programs of models of which something is known late: a tree of decisions.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <mutex>
#include <unordered_map>

#include "api/bounded.h"
#include "api/late.h"
#include "api/ports.h"
#include "api/shared_weights.h"
#include "api/staging.h"
#include "compiler/compiler.h"
#include "runtime/state_arrays.h"

namespace heddle::api {
namespace {

using tensor::Literal;
using tensor::Shape;

// A stage, or the program at a leaf.
struct Part {
  std::unique_ptr<Model> model;
  std::shared_ptr<Program> program;
  std::vector<PartInput> inputs;
  std::string key;                       // of a stage: what its value is called
  std::vector<import::OpenOutput> open;  // of a leaf
  std::atomic<bool> kept = true;         // false: contexts are to let it go
  int64_t bytes = 0, last_use = 0;       // the use: of a leaf
};

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
  std::map<std::string, Literal> decided;
  std::map<std::string, const Literal*> carried;
};

std::string bytes_of(const Shape& shape, const void* data) {
  return {static_cast<const char*>(data), static_cast<size_t>(shape.bytes())};
}

std::string text_of(const std::vector<Shape>& shapes) {
  std::string text;
  for (const Shape& shape : shapes) text += tensor::to_string(shape) + ";";
  return text;
}

class LateProgram : public Program, public std::enable_shared_from_this<LateProgram> {
 public:
  LateProgram(const Model& model, CompileOptions options)
      : late_(model.late()), options_(std::move(options)) {
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

  // The node for inputs of these shapes (text_of), from which a run walks.
  std::shared_ptr<Node> root(const std::string& shapes) { return next(root_, shapes); }
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

  Result<std::shared_ptr<Part>> compile(import::Imported imported) {
    auto part = std::make_shared<Part>();
    part->key = imported.undecided;
    part->open = imported.open_outputs;
    part->model = Model::from_imported(std::move(imported));
    part->inputs = inputs_of(*late_, *part->model);
    HEDDLE_ASSIGN_OR_RETURN(part->program, Program::compile(*part->model, options_));
    HEDDLE_RETURN_IF_ERROR(part->program->share(&shared_));
    if (part->key.empty()) HEDDLE_RETURN_IF_ERROR(part->program->use_states(states_));
    const ProgramFacts& facts = part->program->facts();
    part->bytes = facts.constant_bytes + facts.object_bytes + facts.temporary_bytes;
    return part;
  }

  Result<Node::Asks> ask_or_make(const std::shared_ptr<Node>& node, const LateInputs& inputs,
                                 const Computed& computed);
  void add_leaf(const std::shared_ptr<Node>& node);
  void drop_oldest();
  void prune(std::shared_ptr<Node> node);

  std::shared_ptr<const Late> late_;
  CompileOptions options_;
  int64_t most_ = 0, most_bytes_ = 0;
  std::mutex making_;         // of parts: one at a time
  mutable std::mutex mutex_;  // of all below
  std::shared_ptr<Node> root_ = std::make_shared<Node>();
  std::vector<std::shared_ptr<Node>> leaves_;
  std::shared_ptr<Part> first_;  // stays, for who looks at it: compiled(), state_ports()
  int64_t uses_ = 0, bytes_ = 0, compilations_ = 0;
  SharedWeights shared_;  // of `making_`
  std::shared_ptr<runtime::StateArrays> states_ = std::make_shared<runtime::StateArrays>();
  std::deque<ProgramFacts> all_facts_;  // who looks at one keeps it
};

Result<Node::Asks> LateProgram::ask_or_make(const std::shared_ptr<Node>& node,
                                            const LateInputs& inputs, const Computed& computed) {
  const auto known = [&] {
    const std::lock_guard lock(mutex_);
    return node->asks;
  };
  if (const Node::Asks asks = known(); asks != Node::Asks::nothing_yet) return asks;
  const std::lock_guard making(making_);
  if (const Node::Asks asks = known(); asks != Node::Asks::nothing_yet) return asks;
  import::Options options = import_options(*late_, inputs);
  options.decided = computed.decided;
  for (const auto& [name, value] : computed.carried) options.carried.emplace(name, value->shape());
  HEDDLE_ASSIGN_OR_RETURN(import::Imported imported, late_->import(options));
  // Inputs that were asked for on the way here are not asked for again.
  std::vector<int64_t> asked_before, asks_now;
  {
    const std::lock_guard lock(mutex_);
    for (auto above = node->before.lock(); above; above = above->before.lock())
      if (above->asks == Node::Asks::input) asked_before.push_back(above->input);
  }
  for (const import::BoundInput& bound : imported.bound)
    for (size_t i = 0; i < late_->inputs.size(); ++i)
      if (late_->inputs[i].name == bound.name &&
          std::find(asked_before.begin(), asked_before.end(), i) == asked_before.end())
        asks_now.push_back(static_cast<int64_t>(i));
  const bool is_stage = !imported.undecided.empty();
  if (is_stage)
    HEDDLE_RETURN_IF_ERROR(check_stages(computed.decided.size(), imported.undecided_why));
  if (is_stage && computed.decided.contains(imported.undecided))
    return user_error("a value that decides a shape does not become known: {}", imported.undecided);
  HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<Part> part, compile(std::move(imported)));
  const std::lock_guard lock(mutex_);
  std::shared_ptr<Node> last = node;
  for (const int64_t input : asks_now) {
    last->asks = Node::Asks::input;
    last->input = input;
    const auto i = static_cast<size_t>(input);
    last = child(last, bytes_of(inputs.shapes[i], inputs.data[i]));
  }
  last->asks = is_stage ? Node::Asks::stage : Node::Asks::program;
  last->part = part;
  bytes_ += part->bytes;
  if (!is_stage) add_leaf(last);
  return node->asks;
}

void LateProgram::add_leaf(const std::shared_ptr<Node>& node) {
  const std::shared_ptr<Part>& part = node->part;
  part->last_use = ++uses_;
  leaves_.push_back(node);
  if (!first_) first_ = part;
  ProgramFacts facts = part->program->facts();
  facts.compilations = ++compilations_;
  all_facts_.push_back(std::move(facts));
  while (leaves_.size() > 1 && (std::ssize(leaves_) > most_ || bytes_ > most_bytes_)) drop_oldest();
}

void LateProgram::drop_oldest() {
  const auto oldest = std::min_element(leaves_.begin(), leaves_.end(), [](auto& a, auto& b) {
    return a->part->last_use < b->part->last_use;
  });
  const std::shared_ptr<Node> node = *oldest;
  leaves_.erase(oldest);
  shared_.forget();  // what only it had is freed
  prune(node);
}

// Out of the tree, with the stages that led to it alone.
void LateProgram::prune(std::shared_ptr<Node> node) {
  while (node->next.empty()) {
    const std::shared_ptr<Node> before = node->before.lock();
    if (!before) break;
    if (node->part) {
      node->part->kept = false;
      bytes_ -= node->part->bytes;
    }
    std::erase_if(before->next, [&](const auto& entry) { return entry.second == node; });
    node = before;
  }
}

class LateContext : public Context {
 public:
  LateContext(std::shared_ptr<LateProgram> program,
              std::shared_ptr<runtime::Cancellation> cancellation)
      : Context(std::move(cancellation)), program_(std::move(program)) {
    for (const Port& port : program_->inputs()) inputs_.shapes.push_back(port.shape);
    inputs_.data.resize(inputs_.shapes.size());
    shapes_ = text_of(inputs_.shapes);
    outputs_.resize(program_->outputs().size());
  }

  Status bind_input(int64_t number, const void* data) override {
    if (number < 0 || number >= std::ssize(inputs_.data))
      return user_error("no input {}, there are {}", number, inputs_.data.size());
    inputs_.data[static_cast<size_t>(number)] = data;
    return {};
  }
  Status bind_output(int64_t number, void* data) override {
    const std::vector<Port>& ports = outputs();
    if (number < 0 || number >= std::ssize(ports))
      return user_error("no output {}, there are {}", number, ports.size());
    if (!ports[static_cast<size_t>(number)].is_known)
      return user_error("output {}: its shape is not known before heddle_context_prepare",
                        ports[static_cast<size_t>(number)].name);
    outputs_.resize(ports.size());
    outputs_[static_cast<size_t>(number)] = {data, ports[static_cast<size_t>(number)].dims};
    return {};
  }
  Status set_input_shape(int64_t number, const std::vector<int64_t>& dims) override {
    if (!program_->late().shapes) return Context::set_input_shape(number, dims);
    Shape& shape = inputs_.shapes[static_cast<size_t>(number)];
    if (shape.extents() == dims) return {};
    const Shape asked = Shape::array(shape.type(), dims);
    const Port& port = program_->inputs()[static_cast<size_t>(number)];
    HEDDLE_RETURN_IF_ERROR(check_ports({make_port(port.name, "", asked)}, "input"));
    shape = asked;
    shapes_ = text_of(inputs_.shapes);
    inputs_.data[static_cast<size_t>(number)] = nullptr;  // it was of another size
    return {};
  }

  Status prepare() override {
    for (size_t i = 0; i < inputs_.data.size(); ++i)
      if (inputs_.data[i] == nullptr && inputs_.shapes[i].bytes() > 0)
        return user_error("input {} is not bound to memory", program_->inputs()[i].name);
    walked_.clear();
    now_ = nullptr;
    std::erase_if(ready_, [](const auto& entry) { return !entry.second.part->kept; });
    HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<Part> leaf, walk());
    program_->used(leaf);
    HEDDLE_ASSIGN_OR_RETURN(now_, ready(leaf));
    walked_.push_back(now_);
    return leaf->open.empty() ? Status() : run_open(now_);
  }
  const std::vector<Port>* late_outputs() const override { return &outputs(); }

  Status run() override {
    HEDDLE_RETURN_IF_ERROR(prepare());
    const std::vector<Port>& ports = outputs();
    for (size_t i = 0; i < ports.size(); ++i) {
      const bool bound =
          i < outputs_.size() && (outputs_[i].data != nullptr || ports[i].bytes == 0);
      if (!bound) return user_error("output {} is not bound to memory", ports[i].name);
      if (outputs_[i].dims != ports[i].dims && ports[i].bytes > 0)
        return user_error(
            "output {} is {} for these inputs, and its memory was bound for [{}]; bind outputs "
            "behind heddle_context_prepare",
            ports[i].name, tensor::to_string(ports[i].shape), fmt::join(outputs_[i].dims, ","));
    }
    if (!now_->part->open.empty()) {  // it has run
      for (size_t i = 0; i < ports.size(); ++i)
        copy_box(now_->results[i].data(), now_->results[i].shape().extents(), outputs_[i].data,
                 ports[i].dims, ports[i].dims, tensor::type_bytes(ports[i].shape.type()));
      return {};
    }
    HEDDLE_RETURN_IF_ERROR(bind_inputs(*now_));
    for (size_t i = 0; i < ports.size(); ++i)
      HEDDLE_RETURN_IF_ERROR(now_->context->bind_output(static_cast<int64_t>(i), outputs_[i].data));
    return now_->context->run();
  }

  void set_profile(bool on) override {
    profile_ = on;
    for (auto& [part, ready] : ready_) ready.context->set_profile(on);
  }
  void reset_profile() override {
    for (auto& [part, ready] : ready_) ready.context->reset_profile();
  }
  // Of the parts of the last run, in order.
  int64_t command_count() const override {
    int64_t count = 0;
    for (const Ready* part : walked_) count += part->context->command_count();
    return count;
  }
  CommandReport command(int64_t number) const override {
    for (const Ready* part : walked_) {
      const int64_t count = part->context->command_count();
      if (number < count) return part->context->command(number);
      number -= count;
    }
    return CommandReport();
  }

 private:
  struct Ready {
    std::shared_ptr<Part> part;
    std::unique_ptr<Context> context;
    std::vector<Literal> results;  // of a stage, or of a leaf with open outputs
    std::vector<Port> outputs;     // of a leaf, as the last run has them
  };
  struct BoundOutput {
    void* data = nullptr;
    std::vector<int64_t> dims;
  };

  const std::vector<Port>& outputs() const {
    return now_ != nullptr ? now_->outputs : program_->outputs();
  }

  Result<std::shared_ptr<Part>> walk() {
    computed_ = {};
    std::shared_ptr<Node> node = program_->root(shapes_);
    for (;;) {
      HEDDLE_ASSIGN_OR_RETURN(const Node::Asks asks, program_->ask(node, inputs_, computed_));
      if (asks == Node::Asks::program) return node->part;
      if (asks == Node::Asks::input) {
        const auto i = static_cast<size_t>(node->input);
        node = program_->next(node, bytes_of(inputs_.shapes[i], inputs_.data[i]));
        continue;
      }
      HEDDLE_ASSIGN_OR_RETURN(const Literal* const value, run_stage(node->part));
      node = program_->next(node, bytes_of(value->shape(), value->data()));
    }
  }

  // Its value; what else it computes is there for the parts behind it.
  Result<const Literal*> run_stage(const std::shared_ptr<Part>& part) {
    HEDDLE_ASSIGN_OR_RETURN(Ready* const stage, ready(part));
    walked_.push_back(stage);
    HEDDLE_RETURN_IF_ERROR(run_into_results(stage));
    const std::vector<Port>& ports = part->model->outputs();
    for (size_t i = 0; i < ports.size(); ++i)
      computed_.carried.insert_or_assign(ports[i].name, &stage->results[i]);
    Literal value(ports[0].shape);  // of its own: results are written again
    if (value.bytes() > 0)
      std::memcpy(value.mutable_data(), stage->results[0].data(),
                  static_cast<size_t>(value.bytes()));
    return &computed_.decided.insert_or_assign(part->key, std::move(value)).first->second;
  }

  Status run_into_results(Ready* ready) {
    const std::vector<Port>& ports = ready->part->model->outputs();
    HEDDLE_RETURN_IF_ERROR(bind_inputs(*ready));
    for (size_t i = 0; i < ports.size(); ++i) {
      if (i == ready->results.size()) ready->results.emplace_back(ports[i].shape);
      HEDDLE_RETURN_IF_ERROR(ready->context->bind_output(
          static_cast<int64_t>(i),
          ports[i].bytes > 0 ? ready->results[i].mutable_data() : nullptr));
    }
    return ready->context->run();
  }

  // What outputs there are is known behind the run only.
  Status run_open(Ready* leaf) {
    HEDDLE_RETURN_IF_ERROR(run_into_results(leaf));
    std::vector<std::vector<int64_t>> dims;
    for (const Port& port : leaf->outputs) dims.push_back(port.dims);
    for (const import::OpenOutput& open : leaf->part->open)
      dims[static_cast<size_t>(open.output)][static_cast<size_t>(open.dimension)] =
          leaf->results[static_cast<size_t>(open.extent)].get_s64(0) * open.times;
    for (size_t i = 0; i < dims.size(); ++i) {
      const Port& port = leaf->outputs[i];
      if (dims[i] == port.dims) continue;
      Port there = make_port(port.name, port.alias, Shape::array(port.shape.type(), dims[i]));
      there.is_text = port.is_text;
      there.named = port.named;
      leaf->outputs[i] = std::move(there);
    }
    return {};
  }

  Status bind_inputs(const Ready& ready) {
    for (size_t i = 0; i < ready.part->inputs.size(); ++i) {
      const PartInput& input = ready.part->inputs[i];
      const void* data = input.number >= 0 ? inputs_.data[static_cast<size_t>(input.number)]
                                           : computed_.carried.at(input.carried)->data();
      HEDDLE_RETURN_IF_ERROR(ready.context->bind_input(static_cast<int64_t>(i), data));
    }
    return {};
  }

  Result<Ready*> ready(const std::shared_ptr<Part>& part) {
    if (const auto found = ready_.find(part.get()); found != ready_.end()) return &found->second;
    HEDDLE_ASSIGN_OR_RETURN(std::unique_ptr<Context> context,
                            part->program->make_context(cancellation_));
    context->set_profile(profile_);
    Ready& made = ready_[part.get()];
    made.part = part;
    made.context = std::move(context);
    made.outputs = part->model->outputs();
    hide_extents(part->open, made.outputs);
    for (Port& port : made.outputs) port.is_known = true;  // once it has run
    return &made;
  }

  std::shared_ptr<LateProgram> program_;
  LateInputs inputs_;
  std::string shapes_;  // of these
  Computed computed_;   // of the last walk
  std::vector<BoundOutput> outputs_;
  std::unordered_map<const Part*, Ready> ready_;  // what is in it stays where it is
  std::vector<Ready*> walked_;                    // stages of the last walk, and where it ended
  Ready* now_ = nullptr;
  bool profile_ = false;
};

Result<std::unique_ptr<Context>> LateProgram::make_context(
    std::shared_ptr<runtime::Cancellation> cancellation) {
  return std::make_unique<LateContext>(shared_from_this(), std::move(cancellation));
}

// Where the first run's values are known, its program is made now, so that what cannot be compiled
// is said now.
Status LateProgram::begin() {
  if (!late_->first_is_known) return {};
  std::vector<Literal> zeros;
  LateContext first(shared_from_this(), std::make_shared<runtime::Cancellation>());
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const auto given = late_->first.find(inputs_[i].name);
    if (given == late_->first.end()) zeros.emplace_back(inputs_[i].shape);
    const Literal& value = given == late_->first.end() ? zeros.back() : given->second;
    HEDDLE_RETURN_IF_ERROR(first.bind_input(static_cast<int64_t>(i), value.data()));
  }
  HEDDLE_RETURN_IF_ERROR(first.prepare());
  outputs_ = *first.late_outputs();
  if (!zeros.empty())  // how long outputs are is not that of a run
    for (const import::OpenOutput& open : first_->open)
      outputs_[static_cast<size_t>(open.output)].is_known = false;
  for (const std::string& note : first_->program->notes())
    if (std::find(notes_.begin(), notes_.end(), note) == notes_.end()) notes_.push_back(note);
  steps_ = first_->program->steps();
  *report_ = first_->program->report();
  return {};
}

}  // namespace

Result<std::shared_ptr<Program>> compile_late(const Model& model, const CompileOptions& options) {
  auto program = std::make_shared<LateProgram>(model, options);
  HEDDLE_RETURN_IF_ERROR(program->begin());
  return std::shared_ptr<Program>(std::move(program));
}

}  // namespace heddle::api

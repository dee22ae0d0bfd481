// Programs of models of which something is known late: a tree of decisions.
#include "api/late_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "api/bounded.h"
#include "api/late_context.h"
#include "api/log.h"
#include "api/small_stage.h"
#include "compiler/compiler.h"

namespace heddle::api {

using tensor::Literal;
using tensor::Shape;

std::string bytes_of(const Shape& shape, const void* data) {
  return {static_cast<const char*>(data), static_cast<size_t>(shape.bytes())};
}

std::string text_of(const std::vector<Shape>& shapes) {
  std::string text;
  for (const Shape& shape : shapes) text += tensor::to_string(shape) + ";";
  return text;
}

Sizes extents_of(const Part& part, const LateInputs& inputs) {
  const Bounded& bounded = *part.model->bounded();
  Sizes extents(bounded.symbols.size(), 0);
  for (size_t s = 0; s < extents.size(); ++s) {
    if (!bounded.is_own(s)) continue;
    const auto& [input, dimension] = bounded.symbols[s].places.at(0);
    const int64_t number = part.inputs[static_cast<size_t>(input)].number;
    const Port& port = part.model->inputs()[static_cast<size_t>(input)];
    const int64_t times = port.dims[static_cast<size_t>(dimension)] / bounded.first[s];
    extents[s] = inputs.shapes[static_cast<size_t>(number)].dim(dimension) / times;
  }
  bounded.derive(&extents);
  return extents;
}

namespace {

// Of counts that have no bound. With more, what a plan takes could be out of all proportion.
constexpr int64_t kLeastGuess = 1 << 10, kMostGuess = 1 << 14;

// Whether inputs are what follows from the extents that one program is told.
bool fits(const Part& part, const LateInputs& inputs) {
  const Bounded& bounded = *part.model->bounded();
  const std::vector<Port>& ports = part.model->inputs();
  const Sizes extents = extents_of(part, inputs);
  for (size_t s = 0; s < extents.size(); ++s)
    if (extents[s] < bounded.symbols[s].least || extents[s] > bounded.symbols[s].bound)
      return false;
  for (size_t i = 0; i < ports.size(); ++i) {
    const tensor::Shape& shape = inputs.shapes[static_cast<size_t>(part.inputs[i].number)];
    if (bounded.actual(ports[i].dims, bounded.places_of_input(i), extents) != shape.extents())
      return false;
  }
  return true;
}

// Extents of this run that are not what its inputs' dimensions of these names have: those of which
// steps or multiples are counted.
Extents counted_otherwise(const SizeBucket& bucket, const std::vector<Port>& ports,
                          const LateInputs& inputs) {
  Extents result;
  for (size_t i = 0; i < ports.size(); ++i)
    for (size_t d = 0; d < ports[i].named.size(); ++d) {
      const auto multiple = multiple_of(ports[i].named[d].name);
      if (!multiple || !bucket.bounds.contains(multiple->name)) continue;
      const int64_t times = multiple->factor * bucket.step(multiple->name);
      if (times > 1) result[multiple->name] = inputs.shapes[i].dim(static_cast<int64_t>(d)) / times;
    }
  return result;
}

// What is known of all programs with these options. Errors: none can be compiled with them, as a
// small one is.
Result<ProgramFacts> facts_of(CompileOptions options) {
  options.dump.clear();
  options.ranges.clear();
  HEDDLE_ASSIGN_OR_RETURN(
      const auto model,
      Model::parse("options", "HloModule options\nENTRY e { ROOT x = f32[] parameter(0) }\n", {}));
  HEDDLE_ASSIGN_OR_RETURN(const auto program, Program::compile(*model, options));
  const ProgramFacts& from = program->facts();
  ProgramFacts facts;
  facts.compilations = 0;
  facts.device = from.device;
  facts.isa = from.isa;
  facts.target = from.target;
  facts.level = from.level;
  facts.precision = from.precision;
  facts.options = from.options;
  facts.threads = from.threads;
  return facts;
}

// A state would go on twice in a run of which a guess is wrong.
Status check_guess(const Part& part) {
  if (part.counts.guessed.empty()) return {};
  if (!part.program->state_ports().empty())
    return user_error("the program keeps a state, so no run of it can be repeated");
  return check_trimmed(*part.program);
}

void count_bytes(Part* part) {
  const ProgramFacts& facts = part->program->facts();
  part->bytes = facts.constant_bytes + facts.object_bytes + facts.temporary_bytes;
}

}  // namespace

// Room for more, so that not every other run is one of a larger program.
void LateProgram::guess(int64_t count, const std::string& wrong_for) {
  const std::lock_guard lock(mutex_);
  if (!wrong_for.empty()) left_.insert(wrong_for);
  if (guess_ < 0) return;
  guess_ = std::max(guess_, kLeastGuess);
  while (guess_ < kMostGuess && guess_ < count + count / 2) guess_ *= 4;
  if (count > kMostGuess) guess_ = -1;
}

bool LateProgram::leaves_decided(const Node& node, const std::string& value,
                                 const std::string& shapes) {
  const std::lock_guard lock(mutex_);
  if (guess_ <= 0 || node.next.empty() || node.next.contains(value)) return false;
  return left_.insert(shapes).second;
}

// Null: there are none.
std::shared_ptr<const ComputedExtents> LateProgram::computed_extents(const LateInputs& inputs) {
  const auto is_known = [&] {
    const std::lock_guard lock(mutex_);
    return knows_computed_ || !sizes_;
  };
  if (!is_known()) {
    const std::lock_guard making(making_);
    if (!is_known()) {
      std::shared_ptr<const ComputedExtents> found = ComputedExtents::find(*late_, inputs.shapes);
      const std::lock_guard lock(mutex_);
      computed_ = std::move(found);
      if (computed_) sizes_->follow(computed_->ports());
      knows_computed_ = true;
    }
  }
  const std::lock_guard lock(mutex_);
  return computed_;
}

// Once there is a run of other sizes than the first.
void LateProgram::add_computed(LateInputs* inputs) {
  const size_t own = late_->inputs.size();
  inputs->shapes.resize(own);
  inputs->data.resize(own);
  bool differs = false;
  for (size_t i = 0; i < own; ++i) differs = differs || inputs->shapes[i] != late_->inputs[i].shape;
  if (!differs) return;
  const std::shared_ptr<const ComputedExtents> computed = computed_extents(*inputs);
  if (!computed) return;
  const auto more = computed->shapes(inputs->shapes);
  if (!more) return;  // an exact program says why
  inputs->positions.resize(more->size());
  for (size_t k = 0; k < more->size(); ++k) {
    std::vector<int32_t>& line = inputs->positions[k];
    line.resize(static_cast<size_t>((*more)[k].dim(0)));
    std::iota(line.begin(), line.end(), 0);
    inputs->shapes.push_back((*more)[k]);
    inputs->data.push_back(line.data());
  }
}

Result<std::shared_ptr<Node>> LateProgram::root(LateInputs* given, const std::string& shapes) {
  add_computed(given);
  const LateInputs& inputs = *given;
  for (;;) {
    std::optional<SizeBucket> bucket;
    std::string key = shapes;
    if (inputs.no_open_counts) {
      const std::lock_guard lock(mutex_);
      return child(root_, key + " no open counts");
    }
    {
      const std::lock_guard lock(mutex_);
      // What the first run has made is for its counts.
      const bool is_decided = root_->next.contains(shapes) && !left_.contains(shapes);
      if (guess_ > 0 && !is_decided) key += fmt::format(" {}", guess_);
      const auto exact = root_->next.find(key);
      if (exact != root_->next.end()) return exact->second;
      if (sizes_) bucket = sizes_->choose(inputs.shapes);
      if (!bucket) return child(root_, key);
    }
    const std::shared_ptr<Node> node = node_of(*bucket, inputs);
    const std::lock_guard lock(mutex_);
    // What an input should be, but is not, the exact import says.
    if (node) return fits(*node->part, inputs) ? node : child(root_, key);
    sizes_->refuse(*bucket);
  }
}

std::shared_ptr<Node> LateProgram::node_of(const SizeBucket& bucket, const LateInputs& inputs) {
  std::string key = bucket.text();
  int64_t guess = 0;
  const auto known = [&] {
    const std::lock_guard lock(mutex_);
    guess = std::max<int64_t>(guess_, 0);
    key = fmt::format("{} {}", bucket.text(), guess);
    const auto found = root_->next.find(key);
    return found == root_->next.end() ? nullptr : found->second;
  };
  if (std::shared_ptr<Node> node = known(); node && node->part) return node;
  const std::lock_guard making(making_);
  if (std::shared_ptr<Node> node = known(); node && node->part) return node;
  const Result<std::shared_ptr<Part>> part = compile_bucket(bucket, guess, inputs);
  if (!part) {
    log(LogLevel::info, "no program for {}: {}", bucket.ranges(), part.error().message);
    return nullptr;
  }
  const std::lock_guard lock(mutex_);
  std::shared_ptr<Node> node = child(root_, key);
  node->part = *part;
  node->asks = Node::Asks::program;
  bytes_ += node->part->bytes;
  add_leaf(node);
  return node;
}

Result<std::shared_ptr<Part>> LateProgram::compile_bucket(const SizeBucket& bucket, int64_t guess,
                                                          const LateInputs& inputs) {
  import::Options wanted = late_->asked;
  wanted.stages = true;  // counts may stay open; a stage is an error
  wanted.guessed_count = guess;
  OpenOptions open;
  open.bounds = bucket.bounds;
  open.steps = bucket.steps;
  open.sums = bucket.sums;
  wanted.open_extents = bucket.open;
  for (size_t i = 0; i < late_->inputs.size(); ++i)
    open.hints[late_->inputs[i].name] = inputs.shapes[i].extents();
  wanted.shapes.clear();
  wanted.shapes_of_values.clear();
  wanted.open_shapes = open.hints;
  const std::vector<Port> behind = computed_ ? computed_->ports() : std::vector<Port>();
  std::vector<Port> ports = late_->inputs;
  ports.insert(ports.end(), behind.begin(), behind.end());
  open.dims = counted_otherwise(bucket, ports, inputs);
  for (size_t k = 0; k < behind.size(); ++k) {
    wanted.named_extents[behind[k].name] = 0;
    open.hints[behind[k].name] = inputs.shapes[late_->inputs.size() + k].extents();
  }
  auto part = std::make_shared<Part>();
  HEDDLE_ASSIGN_OR_RETURN(part->model,
                          Model::of_bounded(late_->import, wanted, open, bucket.least));
  part->counts = part->model->bounded()->counts;
  part->inputs = inputs_of(*late_, *part->model, behind);
  CompileOptions options = options_;
  options.explain = true;
  auto program = compile_bounded(*part->model, options, false, &shared_);
  if (!program) {  // unsupported: whatever the bounds are
    const std::lock_guard lock(mutex_);
    if (program.error().kind == ErrorKind::unsupported) sizes_->stop(bucket);
    return tl::unexpected(program.error());
  }
  part->program = std::move(*program);
  HEDDLE_RETURN_IF_ERROR(check_guess(*part));
  HEDDLE_RETURN_IF_ERROR(part->program->use_states(states_));
  count_bytes(part.get());
  return part;
}

Result<std::shared_ptr<Part>> LateProgram::compile(import::Imported imported) {
  auto part = std::make_shared<Part>();
  part->key = imported.undecided;
  part->may_be_guessed = imported.guessed.contains(part->key);
  part->counts = count_outputs(imported);
  part->model = Model::from_imported(std::move(imported));
  part->inputs = inputs_of(*late_, *part->model);
  CompileOptions options = options_;
  options.explain = options.explain || !part->counts.guessed.empty();
  if (!part->key.empty() && !interpreted_) part->small = small_stage(*part->model->module());
  if (part->small != SmallStage::no) {
    log(LogLevel::info, "{}: too little to compile, it is interpreted", part->key);
    options.device = "interp";
    options.consume_model = false;
    part->is_interpreted = true;
  }
  HEDDLE_ASSIGN_OR_RETURN(part->program, Program::compile(*part->model, options));
  HEDDLE_RETURN_IF_ERROR(check_guess(*part));
  HEDDLE_RETURN_IF_ERROR(part->program->share(&shared_));
  if (part->key.empty()) HEDDLE_RETURN_IF_ERROR(part->program->use_states(states_));
  count_bytes(part.get());
  return part;
}

// A context that uses the interpreted one goes on to do so until it asks again.
void LateProgram::compile_stage(const std::shared_ptr<Part>& part) {
  const std::lock_guard making(making_);
  if (!part->is_interpreted) return;
  Result<std::shared_ptr<Program>> program = Program::compile(*part->model, options_);
  if (program)
    if (Status shared = (*program)->share(&shared_); !shared)
      program = tl::unexpected(shared.error());
  if (!program) {
    log(LogLevel::info, "{} stays interpreted: {}", part->key, program.error().message);
    return;
  }
  const std::lock_guard lock(mutex_);
  part->program = std::move(*program);
  part->is_interpreted = false;
  const int64_t before = part->bytes;
  count_bytes(part.get());
  if (part->kept) bytes_ += part->bytes - before;
}

Result<LateProgram::Made> LateProgram::make(import::Options options) {
  for (;;) {
    HEDDLE_ASSIGN_OR_RETURN(import::Imported imported, late_->import(options));
    if (!imported.undecided.empty()) {
      HEDDLE_RETURN_IF_ERROR(check_stages(options.decided.size(), imported.undecided_why));
      if (options.decided.contains(imported.undecided))
        return user_error("a value that decides a shape does not become known: {}",
                          imported.undecided);
    }
    Made made;
    made.bound = imported.bound;
    const bool is_guess = !imported.guessed_counts.empty();
    Result<std::shared_ptr<Part>> part = compile(std::move(imported));
    if (part) {
      made.part = std::move(*part);
      return made;
    }
    if (!is_guess) return tl::unexpected(part.error());
    // With the count decided it may be better.
    log(LogLevel::info, "no program for a guessed count: {}", part.error().message);
    options.guessed_count = 0;
    const std::lock_guard lock(mutex_);
    guess_ = -1;
  }
}

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
  {
    const std::lock_guard lock(mutex_);
    options.guessed_count = std::max<int64_t>(guess_, 0);
  }
  for (const auto& [name, value] : computed.carried) options.carried.emplace(name, value->shape());
  HEDDLE_ASSIGN_OR_RETURN(const Made made, make(std::move(options)));
  const std::shared_ptr<Part>& part = made.part;
  const bool is_stage = !part->key.empty();
  // Inputs that were asked for on the way here are not asked for again.
  std::vector<int64_t> asked_before, asks_now;
  {
    const std::lock_guard lock(mutex_);
    for (auto above = node->before.lock(); above; above = above->before.lock())
      if (above->asks == Node::Asks::input) asked_before.push_back(above->input);
  }
  for (const import::BoundInput& bound : made.bound)
    for (size_t i = 0; i < late_->inputs.size(); ++i)
      if (late_->inputs[i].name == bound.name &&
          std::find(asked_before.begin(), asked_before.end(), i) == asked_before.end())
        asks_now.push_back(static_cast<int64_t>(i));
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

Result<std::unique_ptr<Context>> LateProgram::make_context(
    std::shared_ptr<runtime::Cancellation> cancellation) {
  return std::make_unique<LateContext>(shared_from_this(), std::move(cancellation));
}

// Where the first run's values are known, its program is made now, so that what cannot be compiled
// is said now.
Status LateProgram::begin() {
  const bool differ = late_->shapes && late_->deciding.empty() && !interpreted_;
  const auto watch_sizes = [&] {
    std::set<std::string> fixed;
    for (const auto& [name, extent] : late_->asked.dims) fixed.insert(name);
    if (differ && !sizes_) sizes_.emplace(inputs_, std::move(fixed), late_->sizes_differ);
  };
  // Extents that nobody has said are 1 in the model; few runs have them.
  if (!late_->first_is_known || (differ && late_->first.empty() && is_unbound_)) {
    watch_sizes();
    HEDDLE_ASSIGN_OR_RETURN(ProgramFacts facts, facts_of(options_));
    all_facts_.push_back(std::move(facts));
    return {};
  }
  if (late_->sizes_differ) watch_sizes();
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
    for (const import::OpenOutput& open : first_->counts.open)
      outputs_[static_cast<size_t>(open.output)].is_known = false;
  for (const std::string& note : first_->program->notes())
    if (std::find(notes_.begin(), notes_.end(), note) == notes_.end()) notes_.push_back(note);
  steps_ = first_->program->steps();
  *report_ = first_->program->report();
  watch_sizes();
  std::vector<Shape> shapes;
  for (const Port& port : inputs_) shapes.push_back(port.shape);
  if (differ && zeros.empty()) sizes_->choose(shapes);  // a run that was asked for
  return {};
}

Result<std::shared_ptr<Program>> compile_late(const Model& model, const CompileOptions& options,
                                              bool interpreted) {
  auto program = std::make_shared<LateProgram>(model, options, interpreted);
  HEDDLE_RETURN_IF_ERROR(program->begin());
  return std::shared_ptr<Program>(std::move(program));
}

}  // namespace heddle::api

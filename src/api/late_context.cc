#include "api/late_context.h"

#include <fmt/ranges.h>

#include <cstring>

#include "api/bounded.h"
#include "api/ports.h"
#include "api/staging.h"
#include "base/hash.h"

namespace heddle::api {

using tensor::Literal;
using tensor::Shape;

LateContext::LateContext(std::shared_ptr<LateProgram> program,
                         std::shared_ptr<runtime::Cancellation> cancellation)
    : Context(std::move(cancellation)), program_(std::move(program)) {
  for (const Port& port : program_->inputs()) inputs_.shapes.push_back(port.shape);
  inputs_.data.resize(inputs_.shapes.size());
  shapes_ = text_of(inputs_.shapes);
  outputs_.resize(program_->outputs().size());
}

Status LateContext::bind_input(int64_t number, const void* data) {
  const std::vector<Port>& ports = program_->inputs();
  if (number < 0 || number >= std::ssize(ports))
    return user_error("no input {}, there are {}", number, ports.size());
  inputs_.data[static_cast<size_t>(number)] = data;
  return {};
}

Status LateContext::bind_output(int64_t number, void* data) {
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

Status LateContext::set_input_shape(int64_t number, const std::vector<int64_t>& dims) {
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

Status LateContext::prepare() {
  prepared_.reset();
  HEDDLE_RETURN_IF_ERROR(walk_to_the_end());
  const bool has_run = walked_.size() > 1 || !now_->part->counts.empty();
  prepared_ = has_run ? std::optional(hash_of_inputs()) : std::nullopt;
  return {};
}

uint64_t LateContext::hash_of_inputs() const {
  uint64_t hash = hash64(shapes_);
  for (size_t i = 0; i < inputs_.data.size(); ++i)
    if (inputs_.data[i] != nullptr)
      hash = hash64({static_cast<const char*>(inputs_.data[i]),
                     static_cast<size_t>(inputs_.shapes[i].bytes())},
                    hash);
  return hash;
}

// What the inputs lead to; what has to run for that has run then.
Status LateContext::walk_to_the_end() {
  for (size_t i = 0; i < program_->inputs().size(); ++i)
    if (inputs_.data[i] == nullptr && inputs_.shapes[i].bytes() > 0)
      return user_error("input {} is not bound to memory", program_->inputs()[i].name);
  inputs_.no_open_counts = by_habit_ = !shapes_.empty() && nothing_for_ == shapes_;
  for (bool known = false; !known;) {
    walked_.clear();
    now_ = nullptr;
    std::erase_if(ready_, [](const auto& entry) { return !entry.second.part->kept; });
    HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<Part> leaf, walk());
    program_->used(leaf);
    HEDDLE_ASSIGN_OR_RETURN(now_, ready(leaf));
    walked_.push_back(now_);
    if (leaf->model->bounded()) HEDDLE_RETURN_IF_ERROR(set_extents(now_));
    if (!leaf->counts.empty()) HEDDLE_RETURN_IF_ERROR(run_open(now_));
    known = guesses_are_right(*now_);
  }
  nothing_for_ = inputs_.no_open_counts ? shapes_ : "";
  return {};
}

// Where they are not, the next program is for more; where there are no rows, but should be, for
// this run's counts.
bool LateContext::guesses_are_right(const Ready& leaf) {
  const auto is_none = [&](int64_t output) {
    return leaf.results[static_cast<size_t>(output)].get_s64(0) == 0;
  };
  const auto& needed = leaf.part->counts.needed;
  if (std::any_of(needed.begin(), needed.end(), [&](const std::vector<int64_t>& outputs) {
        return std::all_of(outputs.begin(), outputs.end(), is_none);
      })) {
    inputs_.no_open_counts = true;
    by_habit_ = false;
    return false;
  }
  int64_t most = 0;
  for (const import::GuessedCount& one : leaf.part->counts.guessed)
    if (const int64_t n = leaf.results[static_cast<size_t>(one.extent)].get_s64(0); n > one.most)
      most = std::max(most, n);
  if (most == 0) return true;
  sized_ = nullptr;
  program_->guess(most, shapes_);
  return false;
}

Status LateContext::run() {
  // What prepare() has run need not run again for the same values.
  const bool is_prepared = !profile_ && prepared_ && *prepared_ == hash_of_inputs();
  prepared_.reset();
  if (!is_prepared) HEDDLE_RETURN_IF_ERROR(walk_to_the_end());
  const std::vector<Port>& ports = outputs();
  for (size_t i = 0; i < ports.size(); ++i) {
    const bool bound = i < outputs_.size() && (outputs_[i].data != nullptr || ports[i].bytes == 0);
    if (!bound) return user_error("output {} is not bound to memory", ports[i].name);
    if (outputs_[i].dims != ports[i].dims && ports[i].bytes > 0)
      return user_error(
          "output {} is {} for these inputs, and its memory was bound for [{}]; bind outputs "
          "after heddle_context_prepare",
          ports[i].name, tensor::to_string(ports[i].shape), fmt::join(outputs_[i].dims, ","));
  }
  if (!now_->part->counts.empty()) {  // it has run
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

void LateContext::set_profile(bool on) {
  profile_ = on;
  for (auto& [part, ready] : ready_) ready.context->set_profile(on);
}

void LateContext::reset_profile() {
  for (auto& [part, ready] : ready_) ready.context->reset_profile();
}

// Of the parts of the last run, in order.
int64_t LateContext::command_count() const {
  int64_t count = 0;
  for (const Ready* part : walked_) count += part->context->command_count();
  return count;
}

CommandReport LateContext::command(int64_t number) const {
  for (const Ready* part : walked_) {
    const int64_t count = part->context->command_count();
    if (number < count) return part->context->command(number);
    number -= count;
  }
  return CommandReport();
}

Result<std::shared_ptr<Part>> LateContext::walk() {
  computed_ = {};
  // The bucket of the run before need not be found again.
  const bool is_sized = sized_ != nullptr && sized_->kept && sized_shapes_ == shapes_;
  if (is_sized && !inputs_.no_open_counts) return sized_;
  HEDDLE_ASSIGN_OR_RETURN(std::shared_ptr<Node> node, program_->root(&inputs_, shapes_));
  for (;;) {
    HEDDLE_ASSIGN_OR_RETURN(const Node::Asks asks, program_->ask(node, inputs_, computed_));
    if (asks == Node::Asks::program) {
      sized_ = node->part->model->bounded() ? node->part : nullptr;
      sized_shapes_ = shapes_;
      return node->part;
    }
    std::string bytes;
    if (asks == Node::Asks::input) {
      const auto i = static_cast<size_t>(node->input);
      bytes = bytes_of(inputs_.shapes[i], inputs_.data[i]);
    } else {
      HEDDLE_ASSIGN_OR_RETURN(const Literal* const value, run_stage(node->part));
      bytes = bytes_of(value->shape(), value->data());
    }
    if (by_habit_ && !program_->leads_on(*node, bytes)) {
      by_habit_ = inputs_.no_open_counts = false;
      walked_.clear();
      return walk();
    }
    if (asks == Node::Asks::stage && node->part->may_be_guessed && !inputs_.no_open_counts &&
        program_->leaves_decided(*node, bytes, shapes_)) {
      walked_.clear();
      return walk();
    }
    node = program_->next(node, bytes);
  }
}

// Its value; what else it computes is there for the parts behind it.
Result<const Literal*> LateContext::run_stage(const std::shared_ptr<Part>& part) {
  if (part->is_interpreted && part->small == SmallStage::exact &&
      ++part->runs == kMostInterpretedRuns)
    program_->compile_stage(part);
  HEDDLE_ASSIGN_OR_RETURN(Ready* const stage, ready(part));
  walked_.push_back(stage);
  HEDDLE_RETURN_IF_ERROR(run_into_results(stage));
  const std::vector<Port>& ports = part->model->outputs();
  for (size_t i = 0; i < ports.size(); ++i)
    computed_.carried.insert_or_assign(ports[i].name, &stage->results[i]);
  Literal value(ports[0].shape);  // of its own: results are written again
  if (value.bytes() > 0)
    std::memcpy(value.mutable_data(), stage->results[0].data(), static_cast<size_t>(value.bytes()));
  if (part->may_be_guessed) program_->guess(value.get_s64(0));
  return &computed_.decided.insert_or_assign(part->key, std::move(value)).first->second;
}

Status LateContext::run_into_results(Ready* ready) {
  const std::vector<Port>& ports = ready->part->model->outputs();
  const Bounded* bounded = ready->part->model->bounded().get();
  const Sizes extents = bounded ? extents_of(*ready->part, inputs_) : Sizes();
  HEDDLE_RETURN_IF_ERROR(bind_inputs(*ready));
  for (size_t i = 0; i < ports.size(); ++i) {
    Shape shape = ports[i].shape;
    if (bounded)
      shape =
          Shape::array(shape.type(), bounded->actual(ports[i].dims, bounded->outputs[i], extents));
    if (i == ready->results.size()) ready->results.emplace_back(shape);
    if (!(ready->results[i].shape() == shape)) ready->results[i] = Literal(shape);
    HEDDLE_RETURN_IF_ERROR(ready->context->bind_output(
        static_cast<int64_t>(i), ports[i].bytes > 0 ? ready->results[i].mutable_data() : nullptr));
  }
  return ready->context->run();
}

// What outputs there are is known behind the run only.
Status LateContext::run_open(Ready* leaf) {
  HEDDLE_RETURN_IF_ERROR(run_into_results(leaf));
  std::vector<std::vector<int64_t>> dims;
  for (const Port& port : leaf->outputs) dims.push_back(port.dims);
  for (const import::OpenOutput& open : leaf->part->counts.open)
    dims[static_cast<size_t>(open.output)][static_cast<size_t>(open.dimension)] =
        leaf->results[static_cast<size_t>(open.extent)].get_s64(0) * open.times;
  set_dims(leaf, dims);
  return {};
}

void LateContext::set_dims(Ready* leaf, const std::vector<std::vector<int64_t>>& dims) {
  for (size_t i = 0; i < dims.size(); ++i) {
    Port& port = leaf->outputs[i];
    if (dims[i] != port.dims) port = with_dims(port, dims[i]);
  }
}

Status LateContext::set_extents(Ready* leaf) {
  const Model& model = *leaf->part->model;
  const Bounded& bounded = *model.bounded();
  const Sizes extents = extents_of(*leaf->part, inputs_);
  for (size_t s = 0; s < extents.size(); ++s)
    if (bounded.is_own(s))
      HEDDLE_RETURN_IF_ERROR(leaf->context->set_extent(bounded.symbols[s].name, extents[s]));
  std::vector<std::vector<int64_t>> dims;
  for (size_t i = 0; i < leaf->outputs.size(); ++i)
    dims.push_back(bounded.actual_output(i, model.outputs()[i].dims, extents));
  set_dims(leaf, dims);
  return {};
}

Status LateContext::bind_inputs(const Ready& ready) {
  for (size_t i = 0; i < ready.part->inputs.size(); ++i) {
    const PartInput& input = ready.part->inputs[i];
    const void* data = input.number >= 0 ? inputs_.data[static_cast<size_t>(input.number)]
                                         : computed_.carried.at(input.carried)->data();
    HEDDLE_RETURN_IF_ERROR(ready.context->bind_input(static_cast<int64_t>(i), data));
  }
  return {};
}

Result<LateContext::Ready*> LateContext::ready(const std::shared_ptr<Part>& part) {
  const bool is_interpreted = part->is_interpreted;
  if (const auto found = ready_.find(part.get());
      found != ready_.end() && found->second.is_interpreted == is_interpreted)
    return &found->second;
  HEDDLE_ASSIGN_OR_RETURN(std::unique_ptr<Context> context,
                          program_->program_of(*part)->make_context(cancellation_));
  context->set_profile(profile_);
  Ready& made = ready_[part.get()];
  made.part = part;
  made.context = std::move(context);
  made.is_interpreted = is_interpreted;
  made.outputs = part->model->outputs();
  hide_extents(part->counts, made.outputs);
  for (Port& port : made.outputs) port.is_known = true;  // once it has run
  return &made;
}

}  // namespace heddle::api

// Computation: adding, replacing and removing instructions. The order is in computation_order.cc.
#include <algorithm>
#include <unordered_set>

#include "hlo/module.h"
#include "hlo/names.h"

namespace heddle::hlo {
namespace {

// Above this length a list of users is indexed: a scalar constant may have thousands.
constexpr size_t kIndexedUsers = 32;

void erase_one(std::vector<Instr*>& list, const Instr* value) {
  auto found = std::find(list.begin(), list.end(), value);
  if (found != list.end()) list.erase(found);
}

bool contains(const std::vector<Instr*>& list, const Instr* value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

}  // namespace

bool Instr::has_user(const Instr* user) const {
  // Callers most often ask about the newest user.
  if (!users_.empty() && users_.back() == user) return true;
  if (user_places_) return user_places_->contains(user);
  return contains(users_, user);
}

void Instr::add_user(Instr* user) {
  if (has_user(user)) return;
  users_.push_back(user);
  if (user_places_) {
    user_places_->emplace(user, users_.size() - 1);
  } else if (users_.size() > kIndexedUsers) {
    user_places_ = std::make_unique<std::unordered_map<const Instr*, size_t>>();
    for (size_t i = 0; i < users_.size(); ++i) user_places_->emplace(users_[i], i);
  }
}

void Instr::remove_user(Instr* user) {
  if (!user_places_) {
    erase_one(users_, user);
    return;
  }
  auto found = user_places_->find(user);
  if (found == user_places_->end()) return;
  // The last user fills the gap: the order of users is only promised to be deterministic.
  const size_t place = found->second;
  user_places_->erase(found);
  if (place + 1 != users_.size()) {
    users_[place] = users_.back();
    (*user_places_)[users_[place]] = place;
  }
  users_.pop_back();
  if (users_.empty()) user_places_.reset();
}

Instr* Computation::find(std::string_view name) const {
  auto found = by_name_.find(std::string(name));
  return found == by_name_.end() ? nullptr : found->second;
}

Instr* Computation::store(std::unique_ptr<Instr> instr) {
  Instr* result = instr.get();
  result->parent_ = this;
  result->place_ = order_.size();
  result->storage_place_ = storage_.size();
  storage_.push_back(std::move(instr));
  order_.push_back(result);
  by_name_.emplace(result->name_, result);
  for (Instr* operand : result->operands_) operand->add_user(result);
  for (Computation* called : result->called_) ++called->callers_;
  if (result->is(Opcode::parameter)) insert_parameter(result);
  return result;
}

// parameters_ is sorted by number, so that it can be indexed by number once complete; a file may
// list them in any order.
void Computation::insert_parameter(Instr* instr) {
  auto at = std::upper_bound(
      parameters_.begin(), parameters_.end(), instr,
      [](const Instr* a, const Instr* b) { return a->parameter_number() < b->parameter_number(); });
  parameters_.insert(at, instr);
}

Instr* Computation::add(Opcode opcode, Shape shape, std::vector<Instr*> operands, Attrs attrs,
                        std::vector<Computation*> called, std::string_view name) {
  for (const Instr* operand : operands) {
    HEDDLE_CHECK(operand, "{}: an operand is null", opcode_text(opcode));
    HEDDLE_CHECK(operand->parent_ == this, "{}: operand {} is of another computation",
                 opcode_text(opcode), operand->name_);
  }
  for (const Computation* computation : called) {
    HEDDLE_CHECK(computation && computation->module_ == module_,
                 "{}: the called computation is of another module", opcode_text(opcode));
  }
  auto instr = std::make_unique<Instr>();
  instr->opcode_ = opcode;
  instr->shape_ = std::move(shape);
  instr->name_ = unique_name(by_name_, next_suffix_, name.empty() ? opcode_text(opcode) : name);
  instr->id_ = module_->next_id_++;
  instr->operands_ = std::move(operands);
  instr->called_ = std::move(called);
  instr->attrs_ = std::move(attrs);
  const size_t row = opcode_info(opcode).attrs_index;
  if (instr->attrs_.index() != row && instr->attrs_.index() == 0)
    instr->attrs_ = default_attrs(static_cast<int>(row));
  HEDDLE_CHECK(instr->attrs_.index() == row, "{} wants other attributes", instr->name_);
  return store(std::move(instr));
}

void Computation::mark_unsorted_if(bool out_of_order) {
  if (!out_of_order) return;
  unsorted_ = true;
  unsettled_.store(true, std::memory_order_release);
}

void Computation::replace_all_uses(Instr* from, Instr* to) {
  HEDDLE_CHECK(from->parent_ == this && to->parent_ == this, "{} and {} are not both of {}",
               from->name_, to->name_, name_);
  if (from == to) return;
  HEDDLE_CHECK(from->shape_.compatible(to->shape_), "{} of {} cannot stand for {} of {}", to->name_,
               tensor::to_string(to->shape_), from->name_, tensor::to_string(from->shape_));
  const bool keeps_own_use = from->has_user(to);
  std::vector<Instr*> users = std::move(from->users_);
  from->users_.clear();
  from->user_places_.reset();
  if (keeps_own_use) from->add_user(to);
  for (Instr* user : users) {
    if (user == to) continue;
    std::replace(user->operands_.begin(), user->operands_.end(), from, to);
    to->add_user(user);
    mark_unsorted_if(to->place_ > user->place_);
  }
  if (!from->control_predecessors_.empty() || !from->control_successors_.empty())
    replace_control_edges(from, to);
  if (root_ == from) root_ = to;
  hand_over_nodes(from, to, users);
}

void Computation::replace_operand(Instr* user, size_t i, Instr* to) {
  HEDDLE_CHECK(user->parent_ == this && to->parent_ == this);
  Instr* from = user->operand(i);
  if (from == to) return;
  user->operands_[i] = to;
  if (!contains(user->operands_, from)) from->remove_user(user);
  to->add_user(user);
  mark_unsorted_if(to->place_ > user->place_);
  user->nodes_.add(nodes_of_dying(from));
  name_new(to, user->nodes_, user->id_);
}

void Computation::set_root(Instr* root) {
  HEDDLE_CHECK(root && root->parent_ == this, "the root of {} must be one of its own", name_);
  root_ = root;
}

void Computation::set_called(Instr* instr, size_t i, Computation* to) {
  HEDDLE_CHECK(instr->parent_ == this && i < instr->called_.size() && to->module_ == module_);
  --instr->called_[i]->callers_;
  ++to->callers_;
  instr->called_[i] = to;
}

void Computation::add_control_edge(Instr* before, Instr* after) {
  HEDDLE_CHECK(before->parent_ == this && after->parent_ == this);
  if (contains(after->control_predecessors_, before)) return;
  after->control_predecessors_.push_back(before);
  before->control_successors_.push_back(after);
  mark_unsorted_if(before->place_ >= after->place_);
}

// Moves the control edges of `from` to `to`, except those that would make a cycle.
void Computation::replace_control_edges(Instr* from, Instr* to) {
  auto reaches = [](Instr* start, const Instr* goal) {  // by operands and control edges, backwards
    std::vector<Instr*> stack{start};
    std::unordered_set<const Instr*> seen{start};
    while (!stack.empty()) {
      Instr* instr = stack.back();
      stack.pop_back();
      if (instr == goal) return true;
      for (const auto* list : {&instr->operands_, &instr->control_predecessors_})
        for (Instr* before : *list)
          if (seen.insert(before).second) stack.push_back(before);
    }
    return false;
  };
  for (Instr* after : std::exchange(from->control_successors_, {})) {
    erase_one(after->control_predecessors_, from);
    if (!reaches(to, after)) add_control_edge(to, after);
  }
  for (Instr* before : std::exchange(from->control_predecessors_, {})) {
    erase_one(before->control_successors_, from);
    if (!reaches(before, to)) add_control_edge(before, to);
  }
}

void Computation::unlink_operands(Instr* instr) {
  for (Instr* operand : instr->operands_) operand->remove_user(instr);
  for (Computation* called : instr->called_) --called->callers_;
  for (Instr* before : instr->control_predecessors_) erase_one(before->control_successors_, instr);
}

void Computation::drop(Instr* instr) {
  order_[instr->place_] = nullptr;
  unsettled_.store(true, std::memory_order_release);
  by_name_.erase(instr->name_);
  const size_t place = instr->storage_place_;
  if (place + 1 != storage_.size()) {
    std::swap(storage_[place], storage_.back());
    storage_[place]->storage_place_ = place;
  }
  storage_.pop_back();
}

void Computation::remove(Instr* instr) {
  HEDDLE_CHECK(instr->parent_ == this, "{} is not of {}", instr->name_, name_);
  HEDDLE_CHECK(instr->users_.empty() && instr->control_successors_.empty() && instr != root_ &&
                   !instr->is(Opcode::parameter),
               "{} is still needed", instr->name_);
  unlink_operands(instr);
  drop(instr);
}

void Computation::remove_parameter(int64_t number) {
  HEDDLE_CHECK(number >= 0 && number < static_cast<int64_t>(parameters_.size()));
  Instr* instr = parameters_[number];
  HEDDLE_CHECK(instr->users_.empty() && instr->control_successors_.empty() && instr != root_,
               "parameter {} of {} is still needed", number, name_);
  parameters_.erase(parameters_.begin() + number);
  for (size_t i = number; i < parameters_.size(); ++i)
    --parameters_[i]->mutable_attrs_as<ParameterAttrs>().number;
  unlink_operands(instr);
  drop(instr);
}

void Computation::rename(Instr* instr, std::string_view name) {
  HEDDLE_CHECK(instr->parent_ == this);
  if (instr->name_ == name) return;
  by_name_.erase(instr->name_);
  instr->name_ = unique_name(by_name_, next_suffix_, name);
  by_name_.emplace(instr->name_, instr);
}

void Computation::copy_instrs(
    const Computation& from, bool keep_ids,
    const std::unordered_map<const Computation*, Computation*>& computations) {
  std::unordered_map<const Instr*, Instr*> copies;
  copies.reserve(from.instrs().size());
  for (const Instr* original : from.instrs()) {
    auto instr = std::make_unique<Instr>();
    instr->opcode_ = original->opcode_;
    instr->shape_ = original->shape_;
    instr->name_ = original->name_;
    instr->id_ = keep_ids ? original->id_ : module_->next_id_++;
    for (const Instr* operand : original->operands_) instr->operands_.push_back(copies.at(operand));
    for (const Computation* called : original->called_)
      instr->called_.push_back(computations.at(called));
    instr->attrs_ = original->attrs_;
    instr->copy_notes(*original);
    copies.emplace(original, store(std::move(instr)));
  }
  for (const Instr* original : from.instrs()) {
    Instr* copy = copies.at(original);
    for (const Instr* before : original->control_predecessors_)
      copy->control_predecessors_.push_back(copies.at(before));
    for (const Instr* after : original->control_successors_)
      copy->control_successors_.push_back(copies.at(after));
    // Keep the order of users: a pass must behave identically on a clone.
    for (size_t i = 0; i < original->users_.size(); ++i) {
      copy->users_[i] = copies.at(original->users_[i]);
      if (copy->user_places_) (*copy->user_places_)[copy->users_[i]] = i;
    }
  }
  execution_thread = from.execution_thread;
  next_suffix_ = from.next_suffix_;
  root_ = from.root_ ? copies.at(from.root_) : nullptr;
}

}  // namespace heddle::hlo

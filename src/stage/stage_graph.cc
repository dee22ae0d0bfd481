#include "stage/stage_graph.h"

#include <algorithm>

#include "hlo/in_place.h"
#include "hlo/top_k_part.h"
#include "stage/fill.h"
#include "stage/parts.h"
#include "stage/stage_builder.h"

namespace heddle::stage {

std::vector<int64_t> Stage::out_extents() const {
  std::vector<int64_t> result;
  for (const Digit& digit : out) result.push_back(digit.extent);
  return result;
}

std::vector<int64_t> Stage::extents() const {
  std::vector<int64_t> result = out_extents();
  for (const Digit& digit : red) result.push_back(digit.extent);
  return result;
}

int64_t Stage::out_elems() const {
  int64_t product = 1;
  for (const Digit& digit : out) product *= digit.extent;
  return product;
}

int64_t Stage::red_elems() const {
  int64_t product = 1;
  for (const Digit& digit : red) product *= digit.extent;
  return product;
}

int64_t Stage::points() const {
  const int64_t all = out_elems() * red_elems();
  return scatter < 0 ? all : all / out[0].extent;
}

int64_t StageGraph::stored_bytes(const Output& output) const {
  return output.array < 0
             ? output.shape.bytes()
             : stage(output.stage).out_elems() * tensor::type_bytes(output.shape.type());
}

bool StageGraph::is_in_parts(int output) const {
  size_t count = 0;
  for (const Stage& stage : stages)
    for (const Value& value : stage.values) count += value.output == output;
  return count > 1;
}

namespace {

// Whether the value is scalar arithmetic on inputs and constants.
bool is_scalar_code(const Instr* value, const Members& members) {
  if (!value->shape().is_scalar()) return false;
  if (members.is_input(value) || value->is(Opcode::constant)) return true;
  if (!has_trait(value->opcode(), hlo::elementwise) && !value->is(Opcode::reshape) &&
      !value->is(Opcode::bitcast))
    return false;
  return std::all_of(value->operands().begin(), value->operands().end(),
                     [&](const Instr* operand) { return is_scalar_code(operand, members); });
}

// The array must be memory that the kernel updates and does not read.
Decision check_box(const Instr* update, const Members& members) {
  const Instr* array = update->operand(0);
  const bool is_output = members.is_output(update) && members.readers(update).empty();
  if (!is_output || !members.is_input(array) || members.is_output(array) ||
      members.readers(array).size() != 1)
    return Decision::no("in-place", "{} updates a slice of an array that its kernel reads",
                        update->name());
  for (size_t i = 2; i < update->operands().size(); ++i)
    if (!is_scalar_code(update->operand(i), members))
      return Decision::no("in-place-start", "the start of {} is more than scalar arithmetic",
                          update->name());
  return Decision::yes();
}

void add_box(const Instr* update, const Members& members, Output* output) {
  if (update->is(Opcode::scatter)) {
    while (update->is(Opcode::scatter)) update = update->operand(0);
    output->array = members.input_number(update);
    return;
  }
  output->array = members.input_number(update->operand(0));
  const tensor::Shape &all = update->shape(), &box = update->operand(1)->shape();
  int64_t stride = 1;
  for (int64_t d = all.rank(); d-- > 0; stride *= all.dim(d))
    if (const int64_t limit = all.dim(d) - box.dim(d); limit > 0)
      output->starts.push_back({update->operand(static_cast<size_t>(2 + d)), limit, stride});
}

class GraphBuilder {
 public:
  GraphBuilder(const Members& members, StageForms forms) : members_(members), forms_(forms) {}

  StagedOrNot build() {
    graph_.name = members_.name();
    for (const Instr* input : members_.inputs())
      graph_.inputs.push_back({input->shape().without_layout()});
    Decision built = add_stages();
    if (built) built = add_outputs();
    if (built) split_digits(&graph_);
    return {std::move(graph_), built};
  }

 private:
  Decision add_stages() {
    const std::unordered_set<const Instr*> roots = choose_sub_roots(members_, forms_.repeat);
    for (const Instr* instr : members_.instrs()) {
      if (instr->is(Opcode::tuple) || instr->is(Opcode::get_tuple_element)) continue;
      if (Decision possible = can_stage(*instr); !possible) return possible;
      if (forms_.parts && is_stored_by_parts(*instr, &members_) && !is_in_parts(instr))
        return Decision::no("parts", "{} joins many arrays, and its kernel reads it",
                            instr->name());
      if (!roots.count(instr)) continue;
      if (const Instr* twin = twin_of(instr)) {
        stages_.emplace(instr, stages_.at(twin));
        continue;
      }
      const StageId first(graph_.stages.size());
      if (Decision added = add(instr); !added) return added;
      stages_.emplace(instr, first);
    }
    return Decision::yes();
  }

  // Another result of the same top-k, which has a stage already.
  const Instr* twin_of(const Instr* instr) const {
    const auto part = hlo::top_k_part(*instr);
    if (!part) return nullptr;
    for (const Instr* user : members_.readers(instr->operand(0))) {
      const auto other = user == instr ? std::nullopt : hlo::top_k_part(*user);
      if (other && other->k == part->k && other->largest == part->largest && stages_.count(user))
        return user;
    }
    return nullptr;
  }

  Decision add(const Instr* instr) {
    if (hlo::is_in_place(*instr) && !instr->is(Opcode::scatter)) {
      if (Decision free = check_box(instr, members_); !free) return free;
      return fill_box(members_, stages_, instr, new_stage());
    }
    if (!is_in_parts(instr)) return fill(members_, stages_, forms_.scans, instr, new_stage());
    Decision filled = Decision::yes();
    int64_t start = 0;
    for (size_t i = 0; i < instr->operands().size() && filled; ++i) {
      filled = fill_part(members_, stages_, instr, i, start, new_stage());
      start += instr->operand(i)->shape().dim(instr->dimensions()[0]);
    }
    return filled;
  }

  Stage* new_stage() { return &graph_.stages.emplace_back(); }

  // Whether it is stored in parts: it is an output once, and no member reads it.
  bool is_in_parts(const Instr* instr) const {
    return forms_.parts && is_stored_by_parts(*instr, &members_) &&
           members_.readers(instr).empty() && std::ranges::count(members_.outputs(), instr) == 1;
  }

  // Outputs that are inputs, or values that another leaf already stores, need a stage that copies;
  // all others are values of their stage, or of the stages of their parts.
  Decision add_outputs() {
    for (const Instr* leaf : members_.outputs()) {
      const bool element = leaf->is(Opcode::get_tuple_element);
      const Instr* root = element ? leaf->operand(0) : leaf;
      int value = element ? static_cast<int>(leaf->tuple_index()) : 0;
      if (const auto part = hlo::top_k_part(*root)) value = part->places ? 1 : 0;
      const bool tuple = leaf->shape().is_tuple();
      const size_t values = tuple ? leaf->shape().elements().size() : 1;
      for (size_t i = 0; i < values; ++i, ++value) {
        const tensor::Shape& shape = tuple ? leaf->shape().elements()[i] : leaf->shape();
        const auto found = stages_.find(root);
        StageId from = found == stages_.end() ? StageId() : found->second;
        if (!from.valid() || is_stored(from, value)) {
          if (tuple) return Decision::no("tuple-twice", "{} leaves the fusion twice", leaf->name());
          from = StageId(graph_.stages.size());
          if (Decision copied = fill_copy(members_, stages_, leaf, new_stage()); !copied)
            return copied;
        }
        const size_t parts = root == leaf && is_in_parts(leaf) ? leaf->operands().size() : 1;
        for (size_t part = from.index(); part < from.index() + parts; ++part)
          graph_.stages[part].values[static_cast<size_t>(value)].output =
              static_cast<int>(graph_.outputs.size());
        graph_.outputs.push_back({from, value, shape.without_layout()});
        if (hlo::is_in_place(*leaf)) add_box(leaf, members_, &graph_.outputs.back());
      }
    }
    return Decision::yes();
  }

  bool is_stored(StageId stage, int value) const {
    return graph_.stage(stage).values[static_cast<size_t>(value)].output >= 0;
  }

  const Members& members_;
  const StageForms forms_;
  StageGraph graph_;
  Stages stages_;
};

}  // namespace

StagedOrNot build_stage_graph(const Members& members, StageForms forms) {
  return GraphBuilder(members, forms).build();
}

}  // namespace heddle::stage

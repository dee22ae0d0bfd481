#include "interp/custom_functions.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "hlo/select_boxes.h"
#include "hlo/symbol.h"
#include "tensor/box_selection.h"

namespace heddle::interp {
namespace {

using tensor::Literal;

// See hlo/select_boxes.h.
Status select_boxes(const hlo::Instr& /*call*/, std::span<const Literal> operands,
                    Literal* result) {
  tensor::BoxSelection how;
  how.most = operands[2].get_s64(0);
  how.centred = operands[2].get_s64(1) != 0;
  how.has_least = operands[2].get_s64(2) != 0;
  how.most_shared = operands[3].get_f64(0);
  how.least_score = operands[4].get_f64(0);
  if (operands.size() > 5) how.there = operands[5].get_s64(0);
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<int64_t> rows,
                          tensor::select_boxes(operands[0], operands[1], how));
  Literal& to = result->mutable_elements()[0];
  if (std::ssize(rows) > to.elems())
    return user_error("{} boxes for {}", rows.size() / 3, tensor::to_string(to.shape()));
  std::copy(rows.begin(), rows.end(), to.mutable_values<int64_t>().begin());
  result->mutable_elements()[1].set_s64(0, std::ssize(rows) / 3);
  return {};
}

// See hlo/symbol.h: masks handle the rows beyond n.
Status first_rows(const hlo::Instr& call, std::span<const Literal> operands, Literal* result) {
  if (!hlo::is_first_rows(call))
    return user_error("{} ({}) takes an array, and two numbers s32[]; its result is the array",
                      call.name(), hlo::kFirstRows);
  *result = operands[0];
  return {};
}

struct Registry {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<const CustomFunction>> functions{
      {std::string(hlo::kSelectBoxes), std::make_shared<const CustomFunction>(select_boxes)},
      {std::string(hlo::kFirstRows), std::make_shared<const CustomFunction>(first_rows)}};
};

Registry& registry() {
  static Registry all;
  return all;
}

}  // namespace

void register_custom_function(const std::string& target, CustomFunction function) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  if (function)
    all.functions[target] = std::make_shared<const CustomFunction>(std::move(function));
  else
    all.functions.erase(target);
}

std::shared_ptr<const CustomFunction> find_custom_function(const hlo::Instr& custom_call) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  const auto found =
      all.functions.find(custom_call.attrs_as<hlo::CustomCallAttrs>().custom_call_target);
  return found == all.functions.end() ? nullptr : found->second;
}

}  // namespace heddle::interp

// Custom calls that have a defined meaning, and refusals by name.
#include <algorithm>
#include <array>
#include <charconv>

#include "base/escape.h"
#include "hlo/library_call.h"
#include "hlo/top_k_part.h"
#include "hlo/winograd_filter.h"
#include "interp/custom_functions.h"
#include "interp/evaluator.h"

namespace heddle::interp {

using hlo::Instr;
using hlo::Opcode;

namespace {

constexpr size_t kToldNodes = 2;  // of the model, in a message

// Annotations of placement: on one device they return their operand.
constexpr std::array<std::string_view, 11> kIdentities = {"Sharding",
                                                          "SPMDFullToShardShape",
                                                          "SPMDShardToFullShape",
                                                          "annotate_device_placement",
                                                          "MoveToDevice",
                                                          "MoveToHost",
                                                          "LayoutConstraint",
                                                          "AssumeGatherIndicesInBound",
                                                          "CustomSPMDPartitioning",
                                                          "InspectSharding",
                                                          "Pin"};

const std::string& target_of(const Instr& instr) {
  return instr.attrs_as<hlo::CustomCallAttrs>().custom_call_target;
}

bool is_identity_target(std::string_view target) {
  return target.starts_with("xla.sdy.") ||
         std::find(kIdentities.begin(), kIdentities.end(), target) != kIdentities.end();
}

bool gives_operands_back(const Instr& instr) {
  const auto& operands = instr.operands();
  if (operands.size() == 1 && instr.shape().same_extents(operands[0]->shape()) &&
      instr.shape().type() == operands[0]->shape().type())
    return true;
  if (!instr.shape().is_tuple() || instr.shape().elements().size() != operands.size()) return false;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!instr.shape().elements()[i].compatible(operands[i]->shape())) return false;
  }
  return true;
}

// Wraps a computation that takes its operands and gives its result.
bool wraps_computation(const Instr& instr) {
  if (instr.called().size() != 1) return false;
  const hlo::Computation& called = *instr.called()[0];
  if (called.parameters().size() != instr.operands().size()) return false;
  for (size_t i = 0; i < instr.operands().size(); ++i) {
    if (!called.parameters()[i]->shape().compatible(instr.operand(i)->shape())) return false;
  }
  return called.root()->shape().compatible(instr.shape());
}

bool is_top_k(const Instr& instr) {
  const std::string& target = target_of(instr);
  if (target != "TopK" && target != "mhlo.topk") return false;
  if (instr.operands().size() != 1 || !instr.shape().is_tuple()) return false;
  const auto& results = instr.shape().elements();
  const Shape& x = instr.operand(0)->shape();
  return results.size() == 2 && x.rank() >= 1 && results[0].rank() == x.rank() &&
         results[1].type() == Type::s32 && results[0].dim(-1) <= x.dim(-1) &&
         !tensor::is_complex(x.type());
}

// Recovers the filter from its points: w = L U Lᵀ, where L G is the identity
// (hlo/winograd_filter.h). Each row of L as the points it sums, with their factors.
struct Points {
  std::array<int, 2> at;
  std::array<double, 2> factor;
};

constexpr std::array<Points, 3> kTwo = {{{{0, 0}, {1, 0}}, {{1, 2}, {1, -1}}, {{3, 3}, {1, 0}}}};
constexpr std::array<Points, 3> kFour = {{{{0, 0}, {4, 0}}, {{2, 1}, {3, -3}}, {{5, 5}, {1, 0}}}};

Literal filter_of_points(const Instr& instr, const Literal& points) {
  const auto& rows = hlo::winograd_filter(instr) == 2 ? kTwo : kFour;
  const Shape& from = points.shape();
  const int64_t channels = from.dim(3), width = from.dim(4), side = from.dim(0);
  const int64_t features = instr.shape().dim(3);
  Literal result(Shape::array(points.type(), instr.shape().extents()));
  for (int64_t n = 0; n < result.elems(); ++n) {
    const int64_t f = n % features, c = n / features % channels;
    const auto tap = static_cast<size_t>(n / features / channels);
    double sum = 0;
    for (size_t i = 0; i < 2; ++i) {
      for (size_t j = 0; j < 2; ++j) {
        const Points &row = rows[tap / 3], &column = rows[tap % 3];
        const int64_t point = row.at[i] * side + column.at[j];
        sum +=
            row.factor[i] * column.factor[j] *
            points.get_f64(((point * from.dim(2) + f / width) * channels + c) * width + f % width);
      }
    }
    result.set_f64(n, sum);
  }
  return result;
}

// Zero arrays, also nested in tuples.
Result<Literal> zeros_of(const Shape& shape) {
  if (!shape.is_tuple()) return Literal::make(shape);
  std::vector<Literal> elements;
  for (const Shape& element : shape.elements()) {
    HEDDLE_ASSIGN_OR_RETURN(elements.emplace_back(), zeros_of(element));
  }
  return Literal::tuple(std::move(elements));
}

}  // namespace

std::string describe(const Instr& instr) {
  std::string what(hlo::opcode_text(instr.opcode()));
  if (instr.is(Opcode::custom_call)) what += fmt::format(" {}", target_of(instr));
  what += fmt::format(" ({}", instr.name());
  const std::vector<std::string_view> nodes = instr.nodes().list();
  for (size_t i = 0; i < nodes.size() && i < kToldNodes; ++i) what += ", " + escaped(nodes[i]);
  if (nodes.size() > kToldNodes) what += fmt::format(" and {} more", nodes.size() - kToldNodes);
  return what + ")";
}

Result<Literal> eval_custom_call(Evaluator& e, const Instr& instr, Operands& operands) {
  if (hlo::winograd_filter(instr) > 0) return filter_of_points(instr, operands[0]);
  if (const auto part = hlo::top_k_part(instr)) {
    HEDDLE_ASSIGN_OR_RETURN(Literal both, top_k(e, operands[0], part->k, part->largest));
    return both.elements()[part->places ? 1 : 0];
  }
  if (is_top_k(instr)) return top_k(e, operands[0], instr.shape().elements()[0].dim(-1), true);
  if (wraps_computation(instr)) return e.run(*instr.called()[0], std::move(operands));
  if (const auto function = find_custom_function(instr)) {
    HEDDLE_ASSIGN_OR_RETURN(Literal result, zeros_of(instr.shape()));
    HEDDLE_RETURN_IF_ERROR((*function)(instr, operands, &result));
    return result;
  }
  if (operands.size() != 1 || (instr.shape().is_tuple() && !operands[0].shape().is_tuple()))
    return Literal::tuple(std::move(operands));
  return std::move(operands[0]);
}

namespace {

// A call that wraps a computation is that computation, whatever its name.
bool is_custom_function(const Instr& instr) {
  return !wraps_computation(instr) && find_custom_function(instr) != nullptr;
}

std::optional<std::string> refuse_custom_call(const Instr& instr) {
  if (is_top_k(instr) || hlo::winograd_filter(instr) > 0 || hlo::top_k_part(instr))
    return std::nullopt;
  if (hlo::library_call(instr) && wraps_computation(instr)) return std::nullopt;
  const std::string& target = target_of(instr);
  if (is_custom_function(instr)) return std::nullopt;
  if (!is_identity_target(target) && !target.starts_with("xla_builder."))
    return "the target is not known here";
  if (wraps_computation(instr)) return std::nullopt;
  if (is_identity_target(target) && gives_operands_back(instr)) return std::nullopt;
  return "its result has another shape than its operand";
}

// The size of the largest replica group: "{{0,1},{2,3}}" or "[groups,size]<=…". 0: not parsable.
int64_t group_size(std::string_view text) {
  if (text.starts_with("[")) {
    const size_t comma = text.find(',');
    int64_t size = 0;
    if (comma == std::string_view::npos) return 0;
    std::from_chars(text.data() + comma + 1, text.data() + text.size(), size);
    return size;
  }
  int64_t largest = 0, members = 0;
  bool in_number = false;
  for (char c : text) {
    const bool digit = c >= '0' && c <= '9';
    if (digit && !in_number) ++members;
    if (!digit && c != '{' && c != '}' && c != ',' && c != ' ') return 0;
    in_number = digit;
    if (c == '}') {
      largest = std::max(largest, members);
      members = 0;
    }
  }
  return largest;
}

std::optional<std::string> refuse_collective(const Instr& instr) {
  switch (instr.opcode()) {
    case Opcode::partition_id:
    case Opcode::replica_id:
    case Opcode::all_gather_done:
    case Opcode::all_reduce_done:
    case Opcode::collective_permute_done:
      return std::nullopt;
    case Opcode::ragged_all_to_all:
      return "this operator is not evaluated";
    default:
      break;
  }
  const auto& attrs = instr.attrs_as<hlo::CollectiveAttrs>();
  for (auto [source, target] : attrs.source_target_pairs) {
    if (source != 0 || target != 0)
      return fmt::format("it sends from {} to {}; there is one participant", source, target);
  }
  std::string_view groups = attrs.replica_groups;
  bool all = groups.empty() || groups == "{}" || groups == "{{}}";
  bool permute = instr.is(Opcode::collective_permute) || instr.is(Opcode::collective_permute_start);
  const hlo::Module& module = *instr.parent()->module();
  const int64_t size = permute ? 1
                       : all   ? module.replica_count * module.num_partitions
                               : group_size(groups);
  if (size != 1)
    return fmt::format("its group has {} participants; one is evaluated",
                       size == 0 ? "unknown" : std::to_string(size));
  bool scales = instr.is(Opcode::all_gather) || instr.is(Opcode::reduce_scatter);
  if (scales && instr.operands().size() == 1 &&
      !instr.shape().same_extents(instr.operand(0)->shape()))
    return "its result is as large as that of several participants";
  return std::nullopt;
}

std::optional<std::string> refuse_rng_bits(const Instr& instr) {
  const Shape &state = instr.operand(0)->shape(), &result = instr.shape();
  if (state.type() != Type::u64 || state.rank() != 1 || state.dim(0) < 2)
    return fmt::format("its state is {}; wanted u64[2] or more", tensor::to_string(state));
  if (!result.is_tuple() || result.elements().size() != 2 ||
      !result.elements()[0].same_extents(state) || !result.elements()[1].is_array() ||
      tensor::is_complex(result.elements()[1].type()))
    return fmt::format("its result is {}; wanted (state, bits)", tensor::to_string(result));
  return std::nullopt;
}

bool has_unbounded(const Shape& shape) {
  for (const Shape& element : shape.elements()) {
    if (has_unbounded(element)) return true;
  }
  return std::any_of(shape.dims().begin(), shape.dims().end(),
                     [](const tensor::Dim& dim) { return dim.size < 0; });
}

}  // namespace

std::optional<std::string> refusal(const Instr& instr) {
  if (has_unbounded(instr.shape())) return "a dimension without a bound; give it a size";
  const Opcode opcode = instr.opcode();
  switch (opcode) {
    case Opcode::send:
    case Opcode::send_done:
    case Opcode::recv:
    case Opcode::recv_done:
    case Opcode::infeed:
    case Opcode::outfeed:
      return "it communicates with something outside the module";
    case Opcode::custom_call:
      return refuse_custom_call(instr);
    case Opcode::bitcast_convert:
    case Opcode::sort:
    case Opcode::map:
      return std::nullopt;
    case Opcode::rng:
      if (tensor::is_complex(instr.shape().type()))
        return "random complex numbers are not supported";
      return std::nullopt;
    case Opcode::rng_bit_generator:
      return refuse_rng_bits(instr);
    case Opcode::topk:
      if (tensor::is_complex(instr.operand(0)->shape().type()))
        return "complex numbers have no order";
      return std::nullopt;
    default:
      break;
  }
  if (hlo::has_trait(opcode, hlo::collective)) return refuse_collective(instr);
  Step step;
  if (hlo::has_trait(opcode, hlo::elementwise) && !make_step(instr, false, step)) {
    return fmt::format("it is not defined on {}",
                       tensor::type_name(instr.operand(0)->shape().type()));
  }
  return std::nullopt;
}

}  // namespace heddle::interp

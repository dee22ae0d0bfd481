// VHLO: its operations and the conversion of their attributes.
#include <algorithm>
#include <charconv>
#include <unordered_map>

#include "import/vhlo.h"

namespace heddle::import {
namespace {

using Kind = MlirAttr::Kind;

// `versions`: number of versions. `attrs`: the inherent attributes, separated by blanks, each
//   name[@first[-last]][>place][=default]
// An attribute exists in versions `first` to `last` of the operation; `place` is a row of kPlaces,
// with `.field` if the field has another name. An attribute with its default is left out: a word, a
// number (for all its elements), `empty`, `none` (a type), `false`, or `zero` (for all its fields).
struct Row {
  std::string_view name;
  int versions;
  std::string_view attrs;
};

// Destination of an attribute with another form: a field of a stablehlo attribute; or it becomes a
// symbol, or is dropped.
struct Place {
  std::string_view name;
  std::string_view attr;  // the attribute whose value is #stablehlo.name<...>; empty: none
};
constexpr Place kPlaces[] = {
    {"conv", "dimension_numbers"},
    {"dot", "dot_dimension_numbers"},
    {"dot_algorithm", "algorithm"},
    {"gather", "dimension_numbers"},
    {"scatter", "scatter_dimension_numbers"},
    {"channel_handle", "channel_handle"},
    {"symbol", ""},
    {"nothing", ""},
};

#define HEDDLE_CONVOLUTION                                                                 \
  "batch_group_count feature_group_count input_batch_dimension>conv "                      \
  "input_feature_dimension>conv input_spatial_dimensions>conv "                            \
  "kernel_input_feature_dimension>conv kernel_output_feature_dimension>conv "              \
  "kernel_spatial_dimensions>conv lhs_dilation=1 output_batch_dimension>conv "             \
  "output_feature_dimension>conv output_spatial_dimensions>conv precision_config=DEFAULT " \
  "rhs_dilation=1 window_reversal=0 window_strides=1 "
#define HEDDLE_GATHER                                                               \
  "collapsed_slice_dims>gather index_vector_dim>gather indices_are_sorted=false "   \
  "offset_dims>gather operand_batching_dims@2>gather=empty start_index_map>gather " \
  "start_indices_batching_dims@2>gather=empty "
#define HEDDLE_CHANNEL "channel_id>channel_handle.handle=0 "
#define HEDDLE_TRANSFER                                                                       \
  "channel_id>channel_handle.handle channel_type>channel_handle.type is_host_transfer=false " \
  "source_target_pairs@2=empty "

constexpr std::string_view kAccurate = "result_accuracy@2=zero";

constexpr Row kRows[] = {
    {"abs", 1, ""},
    {"add", 1, ""},
    {"after_all", 1, ""},
    {"all_gather", 2, "all_gather_dim replica_groups use_global_device_ids=false " HEDDLE_CHANNEL},
    {"all_reduce", 2, "replica_groups use_global_device_ids=false " HEDDLE_CHANNEL},
    {"all_to_all", 2,
     "concat_dimension replica_groups split_count split_dimension " HEDDLE_CHANNEL},
    {"and", 1, ""},
    {"async_done", 1, ""},
    {"async_start", 1, ""},
    {"atan2", 1, ""},
    {"batch_norm_grad", 1, "epsilon feature_index"},
    {"batch_norm_inference", 1, "epsilon feature_index"},
    {"batch_norm_training", 1, "epsilon feature_index"},
    {"bitcast_convert", 1, ""},
    {"broadcast", 1, "broadcast_sizes"},
    {"broadcast_in_dim", 1, "broadcast_dimensions"},
    {"call", 1, "callee>symbol"},
    {"case", 1, ""},
    {"cbrt", 2, kAccurate},
    {"ceil", 1, ""},
    {"cholesky", 1, "lower=false"},
    {"clamp", 1, ""},
    {"collective_broadcast", 2, "has_dynamic_root@2=false replica_groups " HEDDLE_CHANNEL},
    {"collective_permute", 1, "source_target_pairs " HEDDLE_CHANNEL},
    {"collective_reduce", 1,
     "has_dynamic_root=false replica_groups use_global_device_ids=false " HEDDLE_CHANNEL},
    {"compare", 1, "compare_type=NOTYPE comparison_direction"},
    {"complex", 1, ""},
    {"composite", 2, "composite_attributes=empty decomposition>symbol name version=0"},
    {"concatenate", 1, "dimension"},
    {"constant", 1, "value"},
    {"convert", 1, ""},
    {"convolution", 1, HEDDLE_CONVOLUTION "padding=0"},
    {"cosine", 2, kAccurate},
    {"count_leading_zeros", 1, ""},
    {"create_token", 1, ""},
    {"cross-replica-sum", 1, "replica_groups"},
    {"custom_call", 2,
     "api_version=1 backend_config=empty call_target_name called_computations>symbol=empty "
     "has_side_effect=false operand_layouts=empty output_operand_aliases=empty "
     "result_layouts=empty result_tilings@2=empty"},
    {"divide", 1, ""},
    {"dot", 1, "precision_config=DEFAULT"},
    {"dot_general", 2,
     "accumulation_type@2>dot_algorithm=none allow_imprecise_accumulation@2>dot_algorithm=none "
     "lhs_batching_dimensions>dot lhs_component_count@2>dot_algorithm=none "
     "lhs_contracting_dimensions>dot lhs_precision_type@2>dot_algorithm=none "
     "num_primitive_operations@2>dot_algorithm=none precision_config=DEFAULT "
     "rhs_batching_dimensions>dot rhs_component_count@2>dot_algorithm=none "
     "rhs_contracting_dimensions>dot rhs_precision_type@2>dot_algorithm=none"},
    {"dynamic_broadcast_in_dim", 1,
     "broadcast_dimensions known_expanding_dimensions=empty known_nonexpanding_dimensions=empty"},
    {"dynamic_conv", 2, HEDDLE_CONVOLUTION "padding@1-1>nothing"},
    {"dynamic_gather", 2, HEDDLE_GATHER},
    {"dynamic_iota", 1, "iota_dimension"},
    {"dynamic_pad", 1, ""},
    {"dynamic_reshape", 1, ""},
    {"dynamic_slice", 1, "slice_sizes"},
    {"dynamic_update_slice", 1, ""},
    {"einsum", 1, "einsum_config"},
    {"exponential", 2, kAccurate},
    {"exponential_minus_one", 2, kAccurate},
    {"fft", 1, "fft_length fft_type"},
    {"floor", 1, ""},
    {"func", 1, "arg_attrs=empty function_type res_attrs=empty sym_name sym_visibility=empty"},
    {"gather", 2, HEDDLE_GATHER "slice_sizes"},
    {"get_dimension_size", 1, "dimension"},
    {"get_tuple_element", 1, "index"},
    {"if", 1, ""},
    {"imag", 1, ""},
    {"infeed", 1, "infeed_config=empty layout=empty"},
    {"iota", 1, "iota_dimension"},
    {"is_finite", 1, ""},
    {"log", 2, kAccurate},
    {"log_plus_one", 2, kAccurate},
    {"logistic", 2, kAccurate},
    {"map", 1, "dimensions"},
    {"maximum", 1, ""},
    {"minimum", 1, ""},
    {"multiply", 1, ""},
    {"negate", 1, ""},
    {"not", 1, ""},
    {"optimization_barrier", 1, ""},
    {"or", 1, ""},
    {"outfeed", 1, "outfeed_config=empty"},
    {"pad", 1, "edge_padding_high edge_padding_low interior_padding"},
    {"partition_id", 1, ""},
    {"popcnt", 1, ""},
    {"power", 1, ""},
    {"real", 1, ""},
    {"real_dynamic_slice", 1, ""},
    {"recv", 2, HEDDLE_TRANSFER},
    {"reduce", 1, "dimensions"},
    {"reduce_precision", 1, "exponent_bits mantissa_bits"},
    {"reduce_scatter", 1,
     "replica_groups scatter_dimension use_global_device_ids=false " HEDDLE_CHANNEL},
    {"reduce_window", 1,
     "base_dilations=1 padding=0 window_dilations=1 window_dimensions window_strides=1"},
    {"remainder", 1, ""},
    {"replica_id", 1, ""},
    {"reshape", 1, ""},
    {"return", 1, ""},
    {"reverse", 1, "dimensions"},
    {"rng", 1, "rng_distribution"},
    {"rng_bit_generator", 1, "rng_algorithm"},
    {"round_nearest_afz", 1, ""},
    {"round_nearest_even", 1, ""},
    {"rsqrt", 2, kAccurate},
    {"scatter", 2,
     "index_vector_dim>scatter indices_are_sorted=false input_batching_dims@2>scatter=empty "
     "inserted_window_dims>scatter scatter_dims_to_operand_dims>scatter "
     "scatter_indices_batching_dims@2>scatter=empty unique_indices=false "
     "update_window_dims>scatter"},
    {"select", 1, ""},
    {"select_and_scatter", 1, "padding=0 window_dimensions window_strides=1"},
    {"send", 2, HEDDLE_TRANSFER},
    {"set_dimension_size", 1, "dimension"},
    {"shift_left", 1, ""},
    {"shift_right_arithmetic", 1, ""},
    {"shift_right_logical", 1, ""},
    {"sign", 1, ""},
    {"sine", 2, kAccurate},
    {"slice", 1, "limit_indices start_indices strides"},
    {"sort", 1, "dimension=-1 is_stable=false"},
    {"sqrt", 2, kAccurate},
    {"subtract", 1, ""},
    {"tan", 2, kAccurate},
    {"tanh", 2, kAccurate},
    {"torch_index_select", 1, "batch_dims dim"},
    {"transpose", 1, "permutation"},
    {"triangular_solve", 1, "left_side lower transpose_a unit_diagonal"},
    {"tuple", 1, ""},
    {"unary_einsum", 1, "einsum_config"},
    {"uniform_dequantize", 1, ""},
    {"uniform_quantize", 1, ""},
    {"while", 1, ""},
    {"xor", 1, ""},
};

// One entry of Row::attrs.
struct Attr {
  std::string_view name, place, field, unless;
  int first = 1, last = 99;
};

int digit(char c) { return c - '0'; }

Attr attr_of(std::string_view text) {
  Attr attr;
  const auto behind = [&](char mark) {  // removes it from the text
    const size_t at = text.find(mark);
    if (at == std::string_view::npos) return std::string_view();
    const std::string_view rest = text.substr(at + 1);
    text = text.substr(0, at);
    return rest;
  };
  attr.unless = behind('=');
  attr.place = behind('>');
  const std::string_view versions = behind('@');
  attr.name = attr.field = text;
  if (const size_t dot = attr.place.find('.'); dot != std::string_view::npos) {
    attr.field = attr.place.substr(dot + 1);
    attr.place = attr.place.substr(0, dot);
  }
  if (!versions.empty()) attr.first = digit(versions[0]);
  if (versions.size() > 2) attr.last = digit(versions[2]);
  return attr;
}

struct Operation {
  std::vector<Attr> attrs;  // by name
  int versions = 1;
};

const std::unordered_map<std::string_view, Operation>& operations() {
  static const auto* const kTable = [] {
    auto* table = new std::unordered_map<std::string_view, Operation>();
    for (const Row& row : kRows) {
      Operation& operation = (*table)[row.name];
      operation.versions = row.versions;
      for (std::string_view rest = row.attrs; !rest.empty();) {
        const size_t end = std::min(rest.find(' '), rest.size());
        if (end > 0) operation.attrs.push_back(attr_of(rest.substr(0, end)));
        rest.remove_prefix(std::min(end + 1, rest.size()));
      }
      std::sort(operation.attrs.begin(), operation.attrs.end(),
                [](const Attr& a, const Attr& b) { return a.name < b.name; });
    }
    return table;
  }();
  return *kTable;
}

// "gather_v2": the row of gather, and version 2. Null: unknown.
const Operation* find(std::string_view name, std::string_view* base, int* version) {
  const size_t at = name.rfind("_v");
  if (at == std::string_view::npos) return nullptr;
  const std::string_view digits = name.substr(at + 2);
  *base = name.substr(0, at);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), *version);
  if (error != std::errc() || end != digits.data() + digits.size()) return nullptr;
  const auto found = operations().find(*base);
  if (found == operations().end() || *version < 1 || *version > found->second.versions)
    return nullptr;
  return &found->second;
}

bool is_there(const Attr& attr, int version) {
  return version >= attr.first && version <= attr.last;
}

// The inherent attributes are encoded in the order of their names.
std::optional<std::string> properties(std::string_view op) {
  std::string_view base;
  int version = 0;
  const Operation* operation = find(op, &base, &version);
  if (operation == nullptr) return std::nullopt;
  std::string names;
  for (const Attr& attr : operation->attrs)
    if (is_there(attr, version)) names += (names.empty() ? "" : " ") + std::string(attr.name);
  return names;
}

bool is_word(const MlirAttr& attr, std::string_view word) {
  return attr.is(Kind::dialect) && attr.elements.size() == 1 && attr.elements[0].text == word;
}

bool is_zero(const MlirAttr& attr) {
  return attr.is(Kind::integer)    ? attr.integer == 0
         : attr.is(Kind::floating) ? attr.floating == 0
                                   : is_word(attr, "DEFAULT");
}

bool is_empty(const MlirAttr& attr) {
  switch (attr.kind) {
    case Kind::string:
      return attr.text.empty();
    case Kind::array:
      return attr.elements.empty();
    case Kind::dictionary:
      return attr.fields.empty();
    case Kind::dense:
      return tensor::checked_product(attr.type.dims) == 0;
    default:
      return false;
  }
}

// Whether it is the default that a row names.
bool says_nothing(const MlirAttr& attr, std::string_view unless) {
  if (unless == "empty") return is_empty(attr);
  if (unless == "none") return attr.is(Kind::type) && attr.type.kind == MlirType::Kind::none;
  if (unless == "zero")
    return attr.is(Kind::dialect) && std::all_of(attr.fields.begin(), attr.fields.end(),
                                                 [](const auto& f) { return is_zero(f.second); });
  if (unless == "false") return attr.is(Kind::boolean) && attr.integer == 0;
  int64_t wanted = 0;
  if (std::from_chars(unless.data(), unless.data() + unless.size(), wanted).ec != std::errc())
    return is_word(attr, unless) ||
           (attr.is(Kind::array) &&
            std::all_of(attr.elements.begin(), attr.elements.end(),
                        [&](const MlirAttr& one) { return is_word(one, unless); }));
  hlo::Ints values;
  return integers_of(attr, &values) &&
         std::all_of(values.begin(), values.end(), [&](int64_t value) { return value == wanted; });
}

void make_symbols(MlirAttr& attr) {
  if (attr.is(Kind::string)) attr.kind = Kind::symbol;
  for (MlirAttr& element : attr.elements) make_symbols(element);
}

// Stores an attribute of `op` at the place given by its row.
void put(MlirOp& op, const Attr& row, MlirAttr value) {
  if (row.place == "nothing") return;
  if (row.place == "symbol") make_symbols(value);
  const Place* place = std::find_if(std::begin(kPlaces), std::end(kPlaces),
                                    [&](const Place& one) { return one.name == row.place; });
  if (place == std::end(kPlaces) || place->attr.empty())
    return void(op.attrs.emplace_back(row.name, std::move(value)));
  auto numbers = std::find_if(op.attrs.begin(), op.attrs.end(),
                              [&](const auto& attr) { return attr.first == place->attr; });
  if (numbers == op.attrs.end()) {
    MlirAttr made;
    made.kind = Kind::dialect;
    made.text = std::string(place->name);
    op.attrs.emplace_back(place->attr, std::move(made));
    numbers = op.attrs.end() - 1;
  }
  numbers->second.fields.emplace_back(row.field, std::move(value));
}

std::string name_of(std::string_view base, bool in_function) {
  const bool of_func = base == "func" || base == "call" || (base == "return" && in_function);
  return (of_func ? "func." : "stablehlo.") + std::string(base);
}

}  // namespace

const BytecodeDialect& vhlo_bytecode() {
  static constexpr BytecodeDialect kDialect = {"vhlo", vhlo_attribute, vhlo_type, properties};
  return kDialect;
}

void upgrade_vhlo(MlirOp& op, bool in_function) {
  constexpr std::string_view kPrefix = "vhlo.";
  const std::string name = op.name.substr(kPrefix.size());
  std::string_view base;
  int version = 0;
  const Operation* operation = find(name, &base, &version);
  if (operation == nullptr) fail("{}: operation {} is not known", place_of(op), quoted(op.name));
  std::vector<std::pair<std::string, MlirAttr>> attrs = std::move(op.attrs);
  op.attrs.clear();
  for (auto& [key, value] : attrs) {
    const auto row = std::find_if(operation->attrs.begin(), operation->attrs.end(),
                                  [&](const Attr& attr) { return attr.name == key; });
    if (row == operation->attrs.end()) {  // a discardable one
      op.attrs.emplace_back(key, std::move(value));
    } else if (row->unless.empty() || !says_nothing(value, row->unless)) {
      put(op, *row, std::move(value));
    }
  }
  op.name = name_of(base, in_function);
}

}  // namespace heddle::import

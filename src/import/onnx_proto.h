// ONNX messages (onnx.proto, IR version 13) as plain structs. Strings and tensor data are views of
// the file's bytes, which must outlive them. Only parts that the importer reads are kept.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace heddle::import::proto {

struct Graph;

// A repeated number field: packed pieces as stored in the file, or single values.
struct Numbers {
  std::vector<std::string_view> packed;
  std::vector<uint64_t> loose;  // bits of values that were not packed
  bool empty() const { return packed.empty() && loose.empty(); }
};

struct Tensor {
  std::string_view name;
  std::vector<int64_t> dims;
  int64_t data_type = 0;
  bool has_raw_data = false, has_segment = false, external = false;
  std::string_view raw_data;
  Numbers float_data, int32_data, int64_data, double_data, uint64_data;
  std::vector<std::string_view> strings;
  std::vector<std::pair<std::string_view, std::string_view>> external_data;
};

enum class AttrType : int64_t {
  undefined = 0,
  float_ = 1,
  int_ = 2,
  string = 3,
  tensor = 4,
  graph = 5,
  floats = 6,
  ints = 7,
  strings = 8,
  tensors = 9,
  graphs = 10,
  sparse_tensor = 11,
  sparse_tensors = 12,
  type_proto = 13,
  type_protos = 14,
};

struct Attribute {
  std::string_view name, ref_attr_name;
  AttrType type = AttrType::undefined;  // as written, or inferred from the field that is set
  float f = 0;
  int64_t i = 0;
  std::string_view s;
  std::vector<float> floats;
  std::vector<int64_t> ints;
  std::vector<std::string_view> strings;
  std::shared_ptr<Tensor> t;
  std::shared_ptr<Graph> g;
};

struct Node {
  std::string_view name, op_type, domain, overload;
  std::vector<std::string_view> inputs, outputs;
  std::vector<Attribute> attributes;
  int64_t place = 0;  // in its graph
};

struct DimInfo {
  enum class Kind { unknown, value, symbol } kind = Kind::unknown;
  int64_t value = 0;
  std::string_view symbol;
};

struct ValueInfo {
  enum class Kind { none, tensor, sequence, map, optional, sparse, opaque } kind = Kind::none;
  std::string_view name;
  int64_t elem_type = 0;
  bool has_shape = false;
  std::vector<DimInfo> dims;
  std::shared_ptr<ValueInfo> element;  // of a sequence or an optional
};

struct Graph {
  std::string_view name;
  std::vector<Node> nodes;
  std::vector<Tensor> initializers;
  std::vector<ValueInfo> inputs, outputs;
  int64_t sparse_initializers = 0;
  std::string_view description;
};

struct OpsetImport {
  std::string_view domain;
  int64_t version = 0;
};

struct Function {
  std::string_view name, domain, overload;
  std::vector<std::string_view> inputs, outputs, attributes;
  std::vector<Attribute> default_attributes;
  std::vector<Node> nodes;
  std::vector<OpsetImport> opsets;
};

struct Model {
  int64_t ir_version = 0;
  std::string_view producer, producer_version, domain, description;
  int64_t version = 0;
  std::vector<std::pair<std::string_view, std::string_view>> metadata;
  std::vector<OpsetImport> opsets;
  bool has_graph = false;
  Graph graph;
  std::vector<Function> functions;
};

// SequenceProto and OptionalProto, limited to tensors.
struct Sequence {
  std::vector<Tensor> tensors;
  bool others = false;  // holds sparse tensors, sequences or maps
};
struct OptionalValue {
  int64_t elem_type = 0;  // 0: without a value
  std::shared_ptr<Tensor> tensor;
  std::shared_ptr<Sequence> sequence;
};

// Throws Failure (failure.h): not protobuf, truncated, nested too deeply, too many nodes.
Model decode_model(std::string_view bytes, int64_t max_nodes);
// Files of a single value.
Tensor decode_tensor(std::string_view bytes);
Sequence decode_sequence(std::string_view bytes);
OptionalValue decode_optional(std::string_view bytes);

}  // namespace heddle::import::proto

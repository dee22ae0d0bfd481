#include "import/onnx_case.h"

#include <algorithm>
#include <set>

#include "import/failure.h"
#include "import/mapped_file.h"
#include "import/onnx_op.h"
#include "import/onnx_proto.h"
#include "import/onnx_tensor.h"

namespace heddle::import {
namespace {

constexpr int64_t kMostNodes = 2'000'000, kMostBytes = int64_t{4} << 30;
constexpr int64_t kMostElems = int64_t{1} << 29;

OnnxKind kind_of(proto::ValueInfo::Kind kind) {
  using Kind = proto::ValueInfo::Kind;
  // A value without a type, which is legal only for outputs, is nearly always a tensor.
  if (kind == Kind::tensor || kind == Kind::none) return OnnxKind::tensor;
  return kind == Kind::sequence ? OnnxKind::sequence : OnnxKind::other;
}

OnnxPort port_of(const proto::ValueInfo& info) {
  OnnxPort port{std::string(info.name), kind_of(info.kind), false};
  if (info.kind == proto::ValueInfo::Kind::optional && info.element != nullptr) {
    port.optional = true;
    port.kind = kind_of(info.element->kind);
  }
  const proto::ValueInfo* inner = port.optional ? info.element.get() : &info;
  if (port.kind == OnnxKind::sequence &&
      (inner->element == nullptr || inner->element->kind != proto::ValueInfo::Kind::tensor))
    port.kind = OnnxKind::other;
  return port;
}

OnnxSignature signature_of(const proto::Model& model) {
  OnnxSignature signature;
  std::set<std::string_view> constants;
  for (const proto::Tensor& tensor : model.graph.initializers) constants.insert(tensor.name);
  for (const proto::ValueInfo& input : model.graph.inputs) {
    if (!constants.contains(input.name)) signature.inputs.push_back(port_of(input));
  }
  for (const proto::ValueInfo& output : model.graph.outputs)
    signature.outputs.push_back(port_of(output));
  for (const proto::OpsetImport& import : model.opsets) {
    const std::string_view domain = normal_domain(import.domain);
    signature.opsets.emplace_back(domain.empty() ? "ai.onnx" : domain, import.version);
  }
  std::set<std::string> seen;
  for (const proto::Node& node : model.graph.nodes) {
    std::string name(normal_domain(node.domain));
    if (!name.empty()) name += '.';
    name += node.op_type;
    if (seen.insert(name).second) signature.operators.push_back(name);
  }
  return signature;
}

OnnxValue sequence_value(const proto::Sequence& sequence, TensorSource& source) {
  if (sequence.others) fail("a sequence of something other than tensors");
  OnnxValue value;
  value.kind = OnnxKind::sequence;
  for (const proto::Tensor& tensor : sequence.tensors)
    value.elements.push_back(to_literal(tensor, source, "element"));
  return value;
}

OnnxValue tensor_value(const proto::Tensor& tensor, TensorSource& source) {
  OnnxValue value;
  value.tensor = to_literal(tensor, source, "value");
  return value;
}

OnnxValue value_of(std::string_view bytes, const OnnxPort& port, TensorSource& source) {
  if (port.kind == OnnxKind::other) fail("{}: a map, a sparse or an opaque value", port.name);
  if (port.optional) {
    const proto::OptionalValue value = proto::decode_optional(bytes);
    if (value.tensor != nullptr) return tensor_value(*value.tensor, source);
    if (value.sequence != nullptr) return sequence_value(*value.sequence, source);
    if (value.elem_type > 1) fail("{}: an optional of another kind", port.name);
    OnnxValue nothing;
    nothing.kind = OnnxKind::nothing;
    return nothing;
  }
  if (port.kind == OnnxKind::sequence) return sequence_value(proto::decode_sequence(bytes), source);
  return tensor_value(proto::decode_tensor(bytes), source);
}

// Calls read(bytes, file); a thrown Failure becomes an error that names the file.
template <typename T, typename Read>
Result<T> read_file(const std::string& path, Read read) {
  HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<const MappedFile> file, MappedFile::open(path));
  try {
    return read(file);
  } catch (const Failure& failure) {
    return error_in(path, failure.error);
  } catch (const std::bad_alloc&) {
    return error_of(ErrorKind::memory, "{}: out of memory", path);
  }
}

}  // namespace

Result<OnnxSignature> read_onnx_signature(const std::string& path) {
  return read_file<OnnxSignature>(path, [](const std::shared_ptr<const MappedFile>& file) {
    return signature_of(proto::decode_model(file->bytes(), kMostNodes));
  });
}

Result<OnnxValue> read_onnx_value(const std::string& path, const OnnxPort& port,
                                  const std::shared_ptr<tensor::Vocabulary>& vocabulary) {
  return read_file<OnnxValue>(path, [&](const std::shared_ptr<const MappedFile>& file) {
    ExternalFiles external("");
    TensorSource source;
    source.file = file;
    source.owner = file;
    source.external = &external;
    source.bytes_left = kMostBytes;
    source.max_elems = kMostElems;
    source.vocabulary = vocabulary;
    return value_of(file->bytes(), port, source);
  });
}

}  // namespace heddle::import

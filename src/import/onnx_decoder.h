// Private to import: the decoder that implements onnx_proto.h. onnx_proto.cc has its lists, graphs
// and models; onnx_proto_values.cc tensors, types and files of a single value.
#pragma once

#include <protozero/pbf_reader.hpp>
#include <protozero/varint.hpp>
#include <string_view>
#include <vector>

#include "import/failure.h"
#include "import/onnx_proto.h"
#include "import/proto_wire.h"

namespace heddle::import::proto {

using protozero::pbf_reader;
using protozero::pbf_wire_type;

constexpr int kDeepest = 100;                         // nested messages
constexpr int64_t kMostElements = int64_t{64} << 20;  // for all repeated fields together
constexpr int64_t kMessageCost = 16;                  // a message counts as that many elements

// Decodes one file. Reading a field with a wire type other than the schema's is undefined in
// protozero, so every read goes through these functions, which check first.
class Decoder {
 public:
  explicit Decoder(int64_t max_nodes) : max_nodes_(max_nodes) {}

  Model model(std::string_view bytes);
  // For a whole file.
  Tensor tensor(std::string_view bytes);
  Sequence sequence(std::string_view bytes);
  OptionalValue optional(std::string_view bytes);

 private:
  using View = std::string_view;

  [[noreturn]] static void wrong_wire(const char* message, const pbf_reader& in) {
    fail("{}: field {} has wire type {}: not an ONNX model, or damaged", message, in.tag(),
         static_cast<int>(in.wire_type()));
  }
  View bytes_of(const char* message, pbf_reader& in) {
    if (in.wire_type() != pbf_wire_type::length_delimited) wrong_wire(message, in);
    return delimited_bytes(in);
  }
  int64_t int_of(const char* message, pbf_reader& in) {
    if (in.wire_type() != pbf_wire_type::varint) wrong_wire(message, in);
    return in.get_int64();
  }
  float float_of(const char* message, pbf_reader& in) {
    if (in.wire_type() != pbf_wire_type::fixed32) wrong_wire(message, in);
    return in.get_float();
  }
  void charge(int64_t elements) {
    elements_ += elements;
    if (elements_ > kMostElements) fail("more than {} entries in the model's lists", kMostElements);
  }
  void strings_of(const char* message, pbf_reader& in, std::vector<View>& to) {
    charge(1);
    to.push_back(bytes_of(message, in));
  }
  void ints_of(const char* message, pbf_reader& in, std::vector<int64_t>& to);
  void floats_of(const char* message, pbf_reader& in, std::vector<float>& to);
  void numbers_of(const char* message, pbf_reader& in, pbf_wire_type wire, Numbers& to);
  // Enters a message; depth and count are bounded.
  pbf_reader enter(const char* message, pbf_reader& in) {
    charge(kMessageCost);
    if (depth_ >= kDeepest) fail("messages nested more than {} deep", kDeepest);
    const View view = bytes_of(message, in);
    return pbf_reader(view.data(), view.size());
  }
  template <typename Function>
  void nested(const char* message, pbf_reader& in, Function read) {
    pbf_reader inner = enter(message, in);
    ++depth_;
    while (inner.next()) read(inner);
    --depth_;
  }

  void graph(pbf_reader& in, Graph& to);
  void graph_field(pbf_reader& in, Graph& to);
  void node(pbf_reader& in, std::vector<Node>& to);
  void attribute(pbf_reader& in, Attribute& to);
  void attribute_field(pbf_reader& in, Attribute& to, AttrType& seen);
  void tensor(pbf_reader& in, Tensor& to);
  void tensor_field(pbf_reader& in, Tensor& to);
  void sequence_field(pbf_reader& in, Sequence& to);
  void tensor_data_field(pbf_reader& in, Tensor& to);
  void value_info(pbf_reader& in, ValueInfo& to);
  void type(pbf_reader& in, ValueInfo& to);
  void tensor_type(pbf_reader& in, ValueInfo& to);
  void dimension(pbf_reader& in, DimInfo& to);
  void opset(pbf_reader& in, std::vector<OpsetImport>& to);
  void metadata(pbf_reader& in, Model& to);
  bool origin_field(pbf_reader& in, Model& to);
  void function(pbf_reader& in, Function& to);

  int64_t max_nodes_, nodes_ = 0, elements_ = 0;
  int depth_ = 0;
};

}  // namespace heddle::import::proto

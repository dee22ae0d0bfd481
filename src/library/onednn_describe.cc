// Translates operations to oneDNN's descriptors, for both versions of its interface.
#include <algorithm>
#include <cstring>

#include "library/onednn_api.h"

namespace heddle::library::onednn {
namespace {

// Larger than a convolution descriptor of version 2 (eight memory descriptors and a few fields).
struct OperationDesc {
  alignas(16) unsigned char bytes[10 * MemoryDesc::kBytes];
};

void copy_dims(const Ints& from, int64_t* to) { std::copy(from.begin(), from.end(), to); }

// The stride of a dimension of one element is arbitrary; a library that compares strides expects
// those of a dense array. Only the first dimension is affected: splitting makes it 1.
Ints settled(const Ints& dims, Ints strides) {
  int64_t all = 1;
  for (size_t d = 1; d < dims.size(); ++d)
    if (dims[d] > 1) all = std::max(all, dims[d] * strides[d]);
  if (dims[0] == 1) strides[0] = all;
  return strides;
}

// Dimensions and strides in oneDNN's order.
struct Strided {
  Ints dims, strides;
};

Ints with_front(int64_t first, int64_t second, const Ints& rest) {
  Ints all = {first, second};
  all.insert(all.end(), rest.begin(), rest.end());
  return all;
}

Strided matrix(int64_t batch, int64_t rows, int64_t columns, const Ints& strides) {
  if (batch == 1) return {{rows, columns}, {strides[1], strides[2]}};
  return {{batch, rows, columns}, strides};
}

Strided a_of(const Operation& o) {
  if (o.kind == Operation::Kind::product) return matrix(o.batch, o.m, o.k, o.a);
  Strided a{with_front(o.images, o.in, o.input), o.a};
  a.strides = settled(a.dims, a.strides);
  return a;
}

Strided c_of(const Operation& o) {
  if (o.kind == Operation::Kind::product) return matrix(o.batch, o.m, o.n, o.c);
  Strided c{with_front(o.images, o.out, o.output), o.c};
  c.strides = settled(c.dims, c.strides);
  return c;
}

Strided b_of(const Operation& o) {
  if (o.kind == Operation::Kind::product) {
    if (o.batch == 1 || o.b[0] != 0) return matrix(o.batch, o.k, o.n, o.b);
    return {{1, o.k, o.n}, {std::max(o.k * o.b[1], o.n * o.b[2]), o.b[1], o.b[2]}};
  }
  Strided b{with_front(o.out / o.groups, o.in / o.groups, o.kernel), o.b};
  if (o.groups > 1) {
    b.dims.insert(b.dims.begin(), o.groups);
    b.strides.insert(b.strides.begin(), o.out / o.groups * o.b[0]);
  }
  return b;
}

Strided bias_of(const Operation& o) {
  if (!o.bias) return {};
  if (o.kind == Operation::Kind::convolution) return {{o.out}, {1}};
  if (o.batch == 1) return {{1, o.n}, {o.n, 1}};
  return {{1, 1, o.n}, {o.n, o.n, 1}};
}

struct Attributes {
  const Api& api;
  Object attr = nullptr;
  explicit Attributes(const Api& api) : api(api) {
    if (api.attr_create(&attr) == 0 && api.attr_set_scratchpad_mode(attr, kScratchpadOfUser) == 0)
      return;
    if (attr != nullptr) api.attr_destroy(attr);
    attr = nullptr;
  }
  Attributes(const Attributes&) = delete;
  ~Attributes() {
    if (attr != nullptr) api.attr_destroy(attr);
  }
};

}  // namespace

MemoryDesc::MemoryDesc(const Api& api, const Ints& dims, const Ints& strides) : api_(api) {
  std::memset(bytes_, 0, sizeof(bytes_));
  if (dims.empty()) return;
  Dims sizes = {}, steps = {};
  copy_dims(dims, sizes);
  copy_dims(strides, steps);
  const int rank = static_cast<int>(dims.size());
  if (api.major == 2)
    code_ = strides.empty() ? api.memory_desc_init_by_tag(bytes_, rank, sizes, kF32, kAnyFormat)
                            : api.memory_desc_init_by_strides(bytes_, rank, sizes, kF32, steps);
  else
    code_ = strides.empty()
                ? api.memory_desc_create_with_tag(&object_, rank, sizes, kF32, kAnyFormat)
                : api.memory_desc_create_with_strides(&object_, rank, sizes, kF32, steps);
}

MemoryDesc::~MemoryDesc() {
  if (object_ != nullptr) api_.memory_desc_destroy(object_);
}

Descriptor MemoryDesc::get() const {
  if (code_ != 0) return nullptr;
  return api_.major == 2 ? static_cast<Descriptor>(bytes_) : object_;
}

Arrays::Arrays(const Api& api, const Operation& o)
    : a(api, a_of(o).dims, a_of(o).strides),
      b(api, b_of(o).dims, b_of(o).strides),
      bias(api, bias_of(o).dims, bias_of(o).strides),
      c(api, c_of(o).dims, c_of(o).strides) {}

Code Arrays::code() const {
  for (const MemoryDesc* desc : {&a, &b, &bias, &c})
    if (desc->code() != 0) return desc->code();
  return 0;
}

Described describe(const Api& api, Object engine, const Operation& o, const Arrays& arrays,
                   bool fixed_b) {
  const MemoryDesc any(api, fixed_b ? b_of(o).dims : Ints{}, {});
  const Descriptor a = arrays.a.get(), b = fixed_b ? any.get() : arrays.b.get();
  const Descriptor bias = o.bias ? arrays.bias.get() : nullptr, c = arrays.c.get();
  const Attributes attributes(api);
  Described made;
  made.code = arrays.code() != 0 ? arrays.code() : any.code();
  if (made.code == 0 && attributes.attr == nullptr) made.code = kOutOfMemory;
  if (made.code != 0) return made;
  const bool product = o.kind == Operation::Kind::product;
  Dims strides = {}, dilations = {}, low = {}, high = {};
  if (!product) {
    copy_dims(o.stride, strides);
    for (size_t d = 0; d < o.dilation.size(); ++d) dilations[d] = o.dilation[d] - 1;
    copy_dims(o.low, low);
    copy_dims(o.high, high);
  }
  if (api.major == 3) {
    made.code =
        product
            ? api.matmul_primitive_desc_create(&made.desc, engine, a, b, bias, c, attributes.attr)
            : api.convolution_primitive_desc_create(&made.desc, engine, kForwardInference, kDirect,
                                                    a, b, bias, c, strides, dilations, low, high,
                                                    attributes.attr);
    return made;
  }
  OperationDesc desc = {};
  made.code = product ? api.matmul_desc_init(desc.bytes, a, b, bias, c)
                      : api.convolution_desc_init(desc.bytes, kForwardInference, kDirect, a, b,
                                                  bias, c, strides, dilations, low, high);
  if (made.code == 0)
    made.code = api.primitive_desc_create(&made.desc, desc.bytes, attributes.attr, engine, nullptr);
  return made;
}

}  // namespace heddle::library::onednn

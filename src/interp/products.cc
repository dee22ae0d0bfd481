#include "interp/products.h"

namespace heddle::interp {

Accumulator accumulator_of(Type lhs, Type rhs, Type out) {
  bool all_integers = true, wide = false;
  for (Type type : {lhs, rhs, out}) {
    Domain domain = domain_of(type);
    if (domain == Domain::complex) return Accumulator::complex;
    all_integers = all_integers && domain != Domain::floating;
    wide =
        wide || type == Type::f64 || (domain != Domain::floating && tensor::type_bits(type) > 24);
  }
  if (all_integers) return Accumulator::integer;
  return wide ? Accumulator::f64 : Accumulator::f32;
}

namespace {

Literal permuted(const Literal& x, const Shape& shape, const Region& to, const Region& from,
                 const Ints& box) {
  Literal result(shape);
  copy_box(box, tensor::type_bytes(x.type()), result.mutable_data(), to, x.data(), from);
  return result;
}

Ints permute(const Ints& list, const Ints& order) {
  Ints result;
  for (int64_t d : order) result.push_back(list[static_cast<size_t>(d)]);
  return result;
}

}  // namespace

template <typename T>
std::vector<T> values_in_order(const Literal& x, const Ints& order) {
  const Ints dims = x.shape().extents();
  const Ints box = permute(dims, order);
  const Literal y = permuted(x, Shape::array(x.type(), box), {0, row_major_strides(box)},
                             {0, permute(row_major_strides(dims), order)}, box);
  if constexpr (std::is_same_v<T, uint64_t>) {
    const std::vector<int64_t> values = values_as<int64_t>(y);
    return std::vector<uint64_t>(values.begin(), values.end());
  } else {
    return values_as<T>(y);
  }
}
template std::vector<float> values_in_order(const Literal&, const Ints&);
template std::vector<double> values_in_order(const Literal&, const Ints&);
template std::vector<uint64_t> values_in_order(const Literal&, const Ints&);
template std::vector<Complex> values_in_order(const Literal&, const Ints&);

template <typename T>
void put_in_order(Literal& out, const Ints& order, const std::vector<T>& values) {
  const Ints dims = out.shape().extents();
  const Ints box = permute(dims, order);
  Literal y(Shape::array(out.type(), box));
  if constexpr (std::is_same_v<T, uint64_t>) {
    std::vector<int64_t> integers(values.begin(), values.end());
    // A pred's sum of products is an "or" of "and"s.
    if (out.type() == Type::pred) {
      for (int64_t& value : integers) value = value != 0;
    }
    set_values(y, integers);
  } else if constexpr (std::is_same_v<T, float>) {
    set_values(y, std::vector<double>(values.begin(), values.end()));
  } else {
    set_values(y, values);
  }
  out = permuted(y, out.shape(), {0, permute(row_major_strides(dims), order)},
                 {0, row_major_strides(box)}, box);
}
template void put_in_order(Literal&, const Ints&, const std::vector<float>&);
template void put_in_order(Literal&, const Ints&, const std::vector<double>&);
template void put_in_order(Literal&, const Ints&, const std::vector<uint64_t>&);
template void put_in_order(Literal&, const Ints&, const std::vector<Complex>&);

}  // namespace heddle::interp

#include "library/operation.h"

#include <charconv>
#include <limits>

namespace heddle::library {
namespace {

constexpr int64_t kMost = int64_t{1} << 40;  // of an extent or a stride

// Calls visit(name, field) for the fields that a kind of operation has.
template <typename OperationT, typename Visit>
void for_each_field(OperationT& o, Visit&& visit) {
  if (o.kind == Operation::Kind::product) {
    visit("batch", o.batch);
    visit("m", o.m);
    visit("n", o.n);
    visit("k", o.k);
  } else {
    visit("images", o.images);
    visit("groups", o.groups);
    visit("in", o.in);
    visit("out", o.out);
    visit("input", o.input);
    visit("kernel", o.kernel);
    visit("output", o.output);
    visit("stride", o.stride);
    visit("dilation", o.dilation);
    visit("low", o.low);
    visit("high", o.high);
  }
  visit("a", o.a);
  visit("b", o.b);
  visit("c", o.c);
  visit("bias", o.bias);
}

bool read(std::string_view text, int64_t* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size();
}

bool read(std::string_view text, bool* value) {
  *value = text == "1";
  return text == "0" || text == "1";
}

bool read(std::string_view text, Ints* values) {
  constexpr size_t kMostEntries = 5;
  values->clear();
  while (values->size() < kMostEntries) {
    const size_t comma = std::min(text.find(','), text.size());
    if (!read(text.substr(0, comma), &values->emplace_back())) return false;
    if (comma == text.size()) return true;
    text.remove_prefix(comma + 1);
  }
  return false;
}

// The next word of a text.
std::string_view take_word(std::string_view* text) {
  const size_t end = std::min(text->find(' '), text->size());
  const std::string_view word = text->substr(0, end);
  text->remove_prefix(std::min(end + 1, text->size()));
  return word;
}

int64_t span(const Ints& extents, const Ints& strides) {
  int64_t last = 0;
  for (size_t d = 0; d < extents.size(); ++d) {
    int64_t step = 0;
    if (__builtin_mul_overflow(extents[d] - 1, strides[d], &step) ||
        __builtin_add_overflow(last, step, &last))
      return std::numeric_limits<int64_t>::max();
  }
  return last == std::numeric_limits<int64_t>::max() ? last : last + 1;
}

Ints with_front(std::initializer_list<int64_t> front, const Ints& rest) {
  Ints all(front);
  all.insert(all.end(), rest.begin(), rest.end());
  return all;
}

// No element is written twice: every stride exceeds the span of all smaller ones.
bool is_written_once(Ints extents, Ints strides) {
  for (size_t done = 0; done < extents.size(); ++done)
    for (size_t d = done + 1; d < extents.size(); ++d)
      if (strides[d] < strides[done]) {
        std::swap(strides[d], strides[done]);
        std::swap(extents[d], extents[done]);
      }
  int64_t reached = 0;
  for (size_t d = 0; d < extents.size(); ++d) {
    if (extents[d] == 1) continue;
    if (strides[d] <= reached) return false;
    reached += (extents[d] - 1) * strides[d];
    if (reached > kMost) return false;
  }
  return true;
}

bool all_within(const Ints& values, int64_t least, int64_t most) {
  for (int64_t value : values)
    if (value < least || value > most) return false;
  return true;
}

Status check_convolution(const Operation& o) {
  const size_t rank = o.input.size();
  bool fits = rank >= 1 && rank <= 3 && o.a.size() == rank + 2 && o.b.size() == rank + 2 &&
              o.c.size() == rank + 2;
  for (const Ints* list : {&o.kernel, &o.output, &o.stride, &o.dilation, &o.low, &o.high})
    fits = fits && list->size() == rank;
  if (!fits) return user_error("library operation: lists of a convolution differ in length");
  fits = all_within({o.images, o.groups, o.in, o.out}, 1, kMost) && o.in % o.groups == 0 &&
         o.out % o.groups == 0;
  for (const Ints* list : {&o.input, &o.kernel, &o.output, &o.stride, &o.dilation})
    fits = fits && all_within(*list, 1, int64_t{1} << 20);
  fits = fits && all_within(o.low, 0, int64_t{1} << 20) && all_within(o.high, 0, int64_t{1} << 20);
  for (size_t d = 0; fits && d < rank; ++d) {
    const int64_t seen = o.dilation[d] * (o.kernel[d] - 1) + 1;
    fits = o.input[d] + o.low[d] + o.high[d] >= seen &&
           (o.input[d] + o.low[d] + o.high[d] - seen) / o.stride[d] + 1 == o.output[d];
  }
  if (!fits) return user_error("library operation: sizes of a convolution do not fit each other");
  return {};
}

}  // namespace

double Operation::flops() const {
  auto product_of = [](const Ints& values) {
    double all = 1;
    for (int64_t value : values) all *= static_cast<double>(value);
    return all;
  };
  if (kind == Kind::product) return 2 * product_of({batch, m, n, k});
  return 2 * product_of(output) * product_of(kernel) * product_of({images, out, in}) /
         static_cast<double>(groups);
}

std::string to_string(const Operation& operation) {
  std::string text = operation.kind == Operation::Kind::product ? "product" : "convolution";
  for_each_field(operation, [&](const char* name, const auto& field) {
    text += std::string(" ") + name + "=";
    if constexpr (std::is_same_v<decltype(field), const Ints&>) {
      for (size_t i = 0; i < field.size(); ++i)
        text += (i == 0 ? "" : ",") + std::to_string(field[i]);
    } else {
      text += std::to_string(static_cast<int64_t>(field));
    }
  });
  return text;
}

Result<Operation> parse_operation(std::string_view text) {
  Operation operation;
  const std::string_view kind = take_word(&text);
  if (kind == "convolution")
    operation.kind = Operation::Kind::convolution;
  else if (kind != "product")
    return user_error("library operation '{}': wanted product or convolution", kind.substr(0, 40));
  std::string wrong;
  for_each_field(operation, [&](const char* name, auto& field) {
    const std::string_view word = take_word(&text);
    const std::string front = std::string(name) + "=";
    if (wrong.empty() && (!word.starts_with(front) || !read(word.substr(front.size()), &field)))
      wrong = fmt::format("'{}', wanted {} and a value", word.substr(0, 40), front);
  });
  if (wrong.empty() && !text.empty()) wrong = fmt::format("'{}' at the end", text.substr(0, 40));
  if (!wrong.empty()) return user_error("library operation: {}", wrong);
  HEDDLE_RETURN_IF_ERROR(check(operation));
  return operation;
}

Status check(const Operation& o) {
  if (o.kind == Operation::Kind::convolution) {
    HEDDLE_RETURN_IF_ERROR(check_convolution(o));
  } else if (!all_within({o.batch, o.m, o.n, o.k}, 1, kMost) || o.a.size() != 3 ||
             o.b.size() != 3 || o.c.size() != 3) {
    return user_error("library operation: sizes of a product are missing or not positive");
  }
  for (const Ints* strides : {&o.a, &o.b, &o.c})
    if (!all_within(*strides, 0, kMost))
      return user_error("library operation: a stride is negative or above 2^40");
  const bool product = o.kind == Operation::Kind::product;
  if (!is_written_once(product ? Ints{o.batch, o.m, o.n} : with_front({o.images, o.out}, o.output),
                       o.c))
    return user_error("library operation: the strides of its result overlap");
  return {};
}

Spans spans(const Operation& o) {
  if (o.kind == Operation::Kind::product)
    return {span({o.batch, o.m, o.k}, o.a), span({o.batch, o.k, o.n}, o.b), o.bias ? o.n : 0,
            span({o.batch, o.m, o.n}, o.c)};
  return {span(with_front({o.images, o.in}, o.input), o.a),
          span(with_front({o.out, o.in / o.groups}, o.kernel), o.b), o.bias ? o.out : 0,
          span(with_front({o.images, o.out}, o.output), o.c)};
}

std::string key_of(const Operation& operation, const std::string& library) {
  Operation sums = operation;
  sums.bias = false;
  return "library v1 " + library + " " + to_string(sums);
}

}  // namespace heddle::library

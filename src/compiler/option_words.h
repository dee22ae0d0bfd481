// The words of an option's row in options.def: "O0|O1|O2".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

namespace heddle::compiler {

// The words of each choice, by its field: ChoiceWords::level.
struct ChoiceWords {
#define HEDDLE_CHOICE(part, Type, field, plain, words, help) \
  static constexpr std::string_view field = words;
#include "compiler/options.def"
};

// The place of `word` in `words`; -1: it is none of them.
constexpr int place_of_word(std::string_view word, std::string_view words) {
  for (int place = 0;; ++place) {
    const size_t end = words.find('|');
    if (words.substr(0, end) == word) return place;
    if (end == std::string_view::npos) return -1;
    words.remove_prefix(end + 1);
  }
}

constexpr std::string_view nth_word(int place, std::string_view words) {
  for (; place > 0; --place) words.remove_prefix(words.find('|') + 1);
  return words.substr(0, words.find('|'));
}

template <typename T>
struct IsOptional : std::false_type {};
template <typename T>
struct IsOptional<std::optional<T>> : std::true_type {};

// The value of a word; of an optional choice also of the empty word.
template <typename T>
constexpr T option_choice(std::string_view word, std::string_view words) {
  const int place = place_of_word(word, words);
  if constexpr (std::is_same_v<T, std::string>) {
    return T(word);
  } else if constexpr (IsOptional<T>::value) {
    return place < 0 ? T() : T(static_cast<typename T::value_type>(place));
  } else {
    return static_cast<T>(place);
  }
}

// The inverse of option_choice().
template <typename T>
std::string choice_word(const T& value, std::string_view words) {
  if constexpr (std::is_same_v<T, std::string>) {
    return value;
  } else if constexpr (IsOptional<T>::value) {
    return value ? choice_word(*value, words) : std::string();
  } else {
    return std::string(nth_word(static_cast<int>(value), words));
  }
}

}  // namespace heddle::compiler

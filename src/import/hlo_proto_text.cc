#include "import/hlo_proto_text.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "hlo/lexer.h"
#include "import/failure.h"

namespace heddle::import {
namespace {

using hlo::Lexer;

void need(Lexer& lexer, char c) {
  if (lexer.accept(c)) return;
  fail("attribute '{}': wanted '{}'", lexer.rest().substr(0, 40), c);
}

int64_t integer(Lexer& lexer) { return value_or_throw(lexer.integer("a number")); }

// Comma-separated numbers, up to the first other token.
Ints integers(Lexer& lexer) {
  Ints out;
  do {
    const char next = lexer.peek();
    if (next != '-' && (next < '0' || next > '9')) break;
    out.push_back(integer(lexer));
  } while (lexer.accept(','));
  return out;
}

Ints integers_in(Lexer& lexer, char open, char close) {
  need(lexer, open);
  Ints out = integers(lexer);
  need(lexer, close);
  return out;
}

// <=[8]T(1,0)
void counted(Lexer& lexer, Devices& devices) {
  devices.reshape = integers_in(lexer, '[', ']');
  if (lexer.accept("T")) devices.transpose = integers_in(lexer, '(', ')');
}

std::string counted_text(const Devices& devices) {
  std::string text = fmt::format("<=[{}]", fmt::join(devices.reshape, ","));
  if (devices.reshape.size() > 1 &&
      !std::is_sorted(devices.transpose.begin(), devices.transpose.end()))
    text += fmt::format("T({})", fmt::join(devices.transpose, ","));
  return text;
}

// In text an omitted permutation is the identity; a proto always has one.
void fill_transpose(Devices& devices) {
  for (size_t i = devices.transpose.size(); i < devices.reshape.size(); ++i)
    devices.transpose.push_back(static_cast<int64_t>(i));
}

constexpr std::pair<std::string_view, Sharding::Kind> kShardings[] = {
    {"replicated", Sharding::Kind::replicated}, {"maximal", Sharding::Kind::maximal},
    {"manual", Sharding::Kind::manual},         {"unknown", Sharding::Kind::unknown},
    {"unreduced", Sharding::Kind::unreduced},
};

std::string_view kind_text(Sharding::Kind kind) {
  for (const auto& [name, known] : kShardings)
    if (known == kind) return name;
  fail("a sharding of kind {} where a simple one is wanted", static_cast<int>(kind));
}

Sharding::Kind kind_of(std::string_view word) {
  for (const auto& [name, kind] : kShardings)
    if (name == word) return kind;
  fail("unknown sharding '{}'", word);
}

void read_word(Lexer& lexer, Sharding& to) {
  const std::string_view word = lexer.ident();
  if (word == "devices") {
    need(lexer, '=');
    to.kind = Sharding::Kind::other;
    to.tile = integers_in(lexer, '[', ']');
    if (lexer.accept("<=")) {
      counted(lexer, to.devices);
      fill_transpose(to.devices);
    } else {
      to.devices.listed = integers(lexer);
    }
  } else if (word == "device") {
    need(lexer, '=');
    to.devices.listed = {integer(lexer)};
  } else if (word == "last_tile_dim_replicate") {
    to.replicate_last = true;
  } else if (word == "last_tile_dims") {
    need(lexer, '=');
    need(lexer, '{');
    while (!lexer.accept('}')) {
      to.last_tile_dims.push_back(kind_of(lexer.ident()));
      lexer.accept(',');
    }
  } else if (word == "metadata") {  // metadata of the sharding, such as its source
    need(lexer, '=');
    value_or_throw(lexer.balanced(false));
  } else if (word == "shard_as" || word == "shard_like") {
    to.in_group = true;
    to.like_group = word == "shard_like";
    to.group = integer(lexer);
  } else {
    to.kind = kind_of(word);
  }
}

Sharding sharding(Lexer& lexer, int depth) {
  if (depth > 8) fail("a sharding nested too deeply");
  Sharding out;
  need(lexer, '{');
  if (lexer.peek() == '{') {
    out.kind = Sharding::Kind::tuple;
    do {
      out.elements.push_back(sharding(lexer, depth + 1));
    } while (lexer.accept(','));
    need(lexer, '}');
    return out;
  }
  while (!lexer.accept('}')) read_word(lexer, out);
  return out;
}

}  // namespace

std::string without_braces(std::string_view text) {
  const size_t begin = text.find('{'), end = text.rfind('}');
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin)
    fail("'{}': wanted braces", text.substr(0, 40));
  return std::string(text.substr(begin + 1, end - begin - 1));
}

std::string unquoted(std::string_view text) {
  if (text.empty() || (text[0] != '"' && text[0] != '\'')) return std::string(text);
  return value_or_throw(Lexer(text).quoted("a string"));
}

int64_t number_in(std::string_view text) {
  Lexer lexer(text);
  return integer(lexer);
}

TextParts split_parts(std::string_view text) {
  TextParts parts;
  Lexer lexer(text);
  while (!lexer.at_end()) {
    const std::string_view key = lexer.ident();
    if (key.empty()) fail("'{}': wanted key=value", text.substr(0, 40));
    need(lexer, '=');
    const bool json = key == "backend_config";
    std::string value(value_or_throw(lexer.value(json)));
    if (key == "literal") value += ' ' + std::string(value_or_throw(lexer.value(false)));
    parts.emplace_back(key, std::move(value));
    if (!lexer.accept(',') && !lexer.at_end()) fail("'{}': wanted ','", text.substr(0, 40));
  }
  return parts;
}

TextParts split_words(std::string_view text) {
  TextParts parts;
  const std::string inner = without_braces(text);
  Lexer lexer(inner);
  while (!lexer.at_end()) {
    const std::string_view key = lexer.ident();
    if (key.empty()) fail("'{}': wanted key=value", text.substr(0, 40));
    need(lexer, '=');
    const char next = lexer.peek();
    const bool is_word = next != '"' && next != '\'' && next != '{';
    parts.emplace_back(
        key, is_word ? std::string(lexer.word()) : std::string(value_or_throw(lexer.value(false))));
    lexer.accept(',');
  }
  return parts;
}

std::string Rest::take(std::string_view key) {
  for (size_t i = 0; i < parts_.size(); ++i) {
    if (parts_[i].first != key) continue;
    std::string value = std::move(parts_[i].second);
    parts_.erase(parts_.begin() + static_cast<int64_t>(i));
    return value;
  }
  return {};
}

std::string Rest::text() const {
  std::string out;
  for (const auto& [key, value] : parts_)
    out += fmt::format("{}{}={}", out.empty() ? "" : ", ", key, value);
  return out;
}

Sharding read_sharding(std::string_view text) {
  Lexer lexer(text);
  Sharding out = sharding(lexer, 0);
  if (!lexer.at_end()) fail("sharding '{}': text behind it", text.substr(0, 40));
  return out;
}

std::string sharding_text(const Sharding& sharding) {
  if (sharding.kind == Sharding::Kind::tuple) {
    std::vector<std::string> texts;
    for (const Sharding& element : sharding.elements) texts.push_back(sharding_text(element));
    return fmt::format("{{{}}}", fmt::join(texts, ", "));
  }
  std::string text;
  if (sharding.kind != Sharding::Kind::other) {
    text = kind_text(sharding.kind);
    if (sharding.kind == Sharding::Kind::maximal && !sharding.devices.listed.empty())
      text += fmt::format(" device={}", sharding.devices.listed[0]);
  } else {
    text = fmt::format("devices=[{}]", fmt::join(sharding.tile, ","));
    text += sharding.devices.reshape.empty()
                ? fmt::format("{}", fmt::join(sharding.devices.listed, ","))
                : counted_text(sharding.devices);
    if (sharding.replicate_last) text += " last_tile_dim_replicate";
    if (!sharding.last_tile_dims.empty()) {
      std::vector<std::string_view> kinds;
      for (const Sharding::Kind kind : sharding.last_tile_dims) kinds.push_back(kind_text(kind));
      text += fmt::format(" last_tile_dims={{{}}}", fmt::join(kinds, ", "));
    }
  }
  if (sharding.in_group)
    text += fmt::format(" {} {}", sharding.like_group ? "shard_like" : "shard_as", sharding.group);
  return "{" + text + "}";
}

ReplicaGroups read_replica_groups(std::string_view text) {
  ReplicaGroups out;
  Lexer lexer(text);
  if (lexer.peek() == '[') {
    out.extents = integers_in(lexer, '[', ']');
    if (out.extents.size() != 2) fail("replica_groups {}: wanted [groups,size]", text);
    if (!lexer.accept("<=")) fail("replica_groups {}: wanted <=", text);
    counted(lexer, out.devices);
    fill_transpose(out.devices);
  } else if (lexer.peek() == '{') {
    need(lexer, '{');
    while (!lexer.accept('}')) {
      out.groups.push_back(integers_in(lexer, '{', '}'));
      lexer.accept(',');
    }
  }
  if (!lexer.at_end()) fail("replica_groups {} is of a form without a message", text);
  return out;
}

std::string replica_groups_text(const ReplicaGroups& groups) {
  if (groups.is_counted())
    return fmt::format("[{}]{}", fmt::join(groups.extents, ","), counted_text(groups.devices));
  std::string text;
  for (const Ints& group : groups.groups)
    text += fmt::format("{}{{{}}}", text.empty() ? "" : ",", fmt::join(group, ","));
  return "{" + text + "}";
}

std::vector<Donor> read_donors(std::string_view text) {
  std::vector<Donor> out;
  Lexer lexer(text);
  need(lexer, '{');
  while (!lexer.accept('}')) {
    Donor donor;
    need(lexer, '(');
    donor.parameter = integer(lexer);
    if (lexer.accept(',')) donor.index = integers_in(lexer, '{', '}');
    need(lexer, ')');
    lexer.accept(',');
    out.push_back(std::move(donor));
  }
  return out;
}

std::string donors_text(const std::vector<Donor>& donors) {
  std::vector<std::string> rows;
  for (const Donor& donor : donors)
    rows.push_back(fmt::format("({}, {{{}}})", donor.parameter, fmt::join(donor.index, ", ")));
  return fmt::format("{{ {} }}", fmt::join(rows, ", "));
}

}  // namespace heddle::import

// HloReader: the Io (hlo_proto_fields.h) that reads a message in place. It finds a field by
// scanning the message, which is fine for messages of few fields; lists are scanned once. Throws
// Failure and protozero's exceptions (proto_wire.h: decoded). The bytes must outlive it.
#pragma once

#include <protozero/pbf_reader.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "import/failure.h"
#include "import/proto_wire.h"

namespace heddle::import {

// Shared by the readers of one file.
struct HloReading {
  static constexpr int kDeepest = 100;                        // messages inside messages
  static constexpr int64_t kMostEntries = int64_t{64} << 20;  // of all lists together
  static constexpr int64_t kMessageCost = 16;                 // in entries
  int depth = 0;
  int64_t entries = 0;
  std::set<std::string> lost;  // parts of the file that are not kept

  void charge(int64_t n) {
    entries += n;
    if (entries > kMostEntries) fail("more than {} entries in the file's lists", kMostEntries);
  }
};

class HloReader {
 public:
  static constexpr bool kReads = true;
  HloReader(std::string_view bytes, HloReading& reading) : bytes_(bytes), reading_(reading) {}

  bool has(int field) const {
    protozero::pbf_reader in = start();
    return in.next(static_cast<protozero::pbf_tag_type>(field));
  }
  void integer(int field, int64_t& value) const {
    value = 0;
    optional(field, value, 0);
  }
  void optional(int field, int64_t& value, int64_t absent) const {
    value = absent;
    for_all(field, protozero::pbf_wire_type::varint,
            [&](protozero::pbf_reader& in) { value = in.get_int64(); });
  }
  void boolean(int field, bool& value) const {
    int64_t number = 0;
    integer(field, number);
    value = number != 0;
  }
  void real(int field, float& value) const {
    value = 0;
    for_all(field, protozero::pbf_wire_type::fixed32,
            [&](protozero::pbf_reader& in) { value = in.get_float(); });
  }
  void real(int field, double& value) const {
    value = 0;
    for_all(field, protozero::pbf_wire_type::fixed64,
            [&](protozero::pbf_reader& in) { value = in.get_double(); });
  }
  std::string_view view(int field) const {
    std::string_view value;
    for_all(field, protozero::pbf_wire_type::length_delimited,
            [&](protozero::pbf_reader& in) { value = delimited_bytes(in); });
    return value;
  }
  void bytes(int field, std::string& value) const { value = view(field); }
  void strings(int field, std::vector<std::string>& values) const {
    values.clear();
    for_all(field, protozero::pbf_wire_type::length_delimited, [&](protozero::pbf_reader& in) {
      reading_.charge(1);
      values.emplace_back(delimited_bytes(in));
    });
  }
  void ints(int field, std::vector<int64_t>& values) const {
    values.clear();
    protozero::pbf_reader in = start();
    while (in.next(static_cast<protozero::pbf_tag_type>(field))) {
      if (in.wire_type() == protozero::pbf_wire_type::varint) {
        reading_.charge(1);
        values.push_back(in.get_int64());
        continue;
      }
      check_wire(in, protozero::pbf_wire_type::length_delimited);
      const std::string_view packed = delimited_bytes(in);
      const char* at = packed.data();
      const char* const end = at + packed.size();
      while (at < end) {
        reading_.charge(1);
        values.push_back(static_cast<int64_t>(protozero::decode_varint(&at, end)));
      }
    }
  }
  // The elements of a list of fixed-width numbers, or of a string: a view if they are contiguous,
  // else a copy in `gathered`.
  std::string_view elements(int field, std::string& gathered) const {
    std::string_view one;
    size_t pieces = 0;
    protozero::pbf_reader in = start();
    while (in.next(static_cast<protozero::pbf_tag_type>(field))) {
      std::string_view piece;
      uint64_t number = 0;
      if (in.wire_type() == protozero::pbf_wire_type::length_delimited) {
        piece = delimited_bytes(in);
      } else {
        reading_.charge(1);
        const bool is_short = in.wire_type() == protozero::pbf_wire_type::fixed32;
        if (!is_short) check_wire(in, protozero::pbf_wire_type::fixed64);
        number = is_short ? in.get_fixed32() : in.get_fixed64();
        piece = {reinterpret_cast<const char*>(&number), is_short ? size_t{4} : size_t{8}};
        if (pieces == 0) ++pieces;  // a local number must be copied
      }
      if (pieces == 1) gathered = one;
      if (pieces >= 1) gathered += piece;
      one = piece;
      ++pieces;
    }
    return pieces > 1 ? std::string_view(gathered) : one;
  }
  template <typename Function>
  bool message(int field, bool, Function read) {
    if (!has(field)) return false;
    enter(view(field), read);
    return true;
  }
  template <typename Function>
  void each(int field, size_t, Function read) {
    size_t i = 0;
    for_all(field, protozero::pbf_wire_type::length_delimited, [&](protozero::pbf_reader& in) {
      enter(delimited_bytes(in), [&](HloReader& inner) { read(inner, i); });
      ++i;
    });
  }
  void lose(std::string_view what) { reading_.lost.emplace(what); }
  HloReading& reading() { return reading_; }

 private:
  protozero::pbf_reader start() const { return {bytes_.data(), bytes_.size()}; }
  static void check_wire(const protozero::pbf_reader& in, protozero::pbf_wire_type wire) {
    if (in.wire_type() != wire)
      fail("field {} has wire type {}: not an HLO proto, or damaged", in.tag(),
           static_cast<int>(in.wire_type()));
  }
  template <typename Function>
  void for_all(int field, protozero::pbf_wire_type wire, Function read) const {
    protozero::pbf_reader in = start();
    while (in.next(static_cast<protozero::pbf_tag_type>(field))) {
      check_wire(in, wire);
      read(in);
    }
  }
  template <typename Function>
  void enter(std::string_view bytes, Function read) {
    reading_.charge(HloReading::kMessageCost);
    if (reading_.depth >= HloReading::kDeepest)
      fail("messages nested more than {} deep", HloReading::kDeepest);
    ++reading_.depth;
    HloReader inner(bytes, reading_);
    read(inner);
    --reading_.depth;
  }

  std::string_view bytes_;
  HloReading& reading_;
};

}  // namespace heddle::import

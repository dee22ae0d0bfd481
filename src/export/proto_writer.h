// ProtoWriter: messages of protocol buffers, and the Io (import/hlo_proto_fields.h) that writes HLO
// protos. Fields are written in call order; fields with their default value are left out. Not
// thread-safe; the string must outlive it.
#pragma once

#include <cstdint>
#include <cstring>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::exports {

class ProtoWriter {
 public:
  static constexpr bool kReads = false;
  // `lost` gets the names of parts without a field; may be null.
  explicit ProtoWriter(std::string* out, std::set<std::string>* lost = nullptr)
      : out_(out), lost_(lost) {}

  // ---- plain fields, always written ----
  void put_number(int field, int64_t value) {
    tag(field, kVarint);
    varint(static_cast<uint64_t>(value));
  }
  void put_float(int field, float value) {
    tag(field, kFixed32);
    out_->append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  void put_bytes(int field, std::string_view value) {
    tag(field, kBytes);
    varint(value.size());
    out_->append(value);
  }
  void put_raw(std::string_view fields) { out_->append(fields); }  // already encoded
  template <typename Function>
  void put_message(int field, Function write) {
    std::string inner;
    ProtoWriter writer(&inner, lost_);
    write(writer);
    put_bytes(field, inner);
  }
  // Packed numbers, a varint each.
  template <typename List>
  void put_packed(int field, const List& values) {
    std::string packed;
    ProtoWriter writer(&packed);
    for (const auto value : values) writer.varint(static_cast<uint64_t>(value));
    put_bytes(field, packed);
  }

  // ---- Io ----
  void integer(int field, int64_t value) { optional(field, value, 0); }
  void optional(int field, int64_t value, int64_t absent) {
    if (value != absent) put_number(field, value);
  }
  void boolean(int field, bool value) { integer(field, value ? 1 : 0); }
  void real(int field, float value) {
    if (value != 0) put_float(field, value);
  }
  void real(int field, double value) {
    if (value == 0) return;
    tag(field, kFixed64);
    out_->append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  void bytes(int field, std::string_view value) {
    if (!value.empty()) put_bytes(field, value);
  }
  void strings(int field, const std::vector<std::string>& values) {
    for (const std::string& value : values) put_bytes(field, value);
  }
  void ints(int field, const std::vector<int64_t>& values) {
    if (!values.empty()) put_packed(field, values);
  }
  template <typename Function>
  bool message(int field, bool present, Function write) {
    if (present) put_message(field, write);
    return present;
  }
  template <typename Function>
  void each(int field, size_t count, Function write) {
    for (size_t i = 0; i < count; ++i)
      put_message(field, [&](ProtoWriter& inner) { write(inner, i); });
  }
  void lose(std::string_view what) {
    if (lost_ != nullptr) lost_->emplace(what);
  }

 private:
  enum Wire : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };
  void tag(int field, Wire wire) { varint(static_cast<uint64_t>(field) << 3 | wire); }
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) out_->push_back(static_cast<char>(value | 0x80));
    out_->push_back(static_cast<char>(value));
  }

  std::string* out_;
  std::set<std::string>* lost_;
};

}  // namespace heddle::exports

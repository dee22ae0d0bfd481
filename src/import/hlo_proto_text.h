// Attributes that hlo::Module keeps as text and HLO protos have as messages: both forms, and
// conversion between them. Texts are those of HLO text; protos are converted to the text that XLA
// writes.
//
// The functions that read text throw Failure (failure.h) if it is malformed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hlo/attrs.h"

namespace heddle::import {

using hlo::Ints;
using TextParts = std::vector<std::pair<std::string, std::string>>;

// Splits "key=value, key=value", with the values as written.
TextParts split_parts(std::string_view text);
// `{key="value" key=3}`, as in metadata: no commas.
TextParts split_words(std::string_view text);
std::string without_braces(std::string_view text);
std::string unquoted(std::string_view text);  // a word without quotes is returned unchanged
int64_t number_in(std::string_view text);

// Attributes kept as "key=value, …": parts that have a message are taken out or added.
class Rest {
 public:
  explicit Rest(std::string_view text) : parts_(split_parts(text)) {}
  std::string take(std::string_view key);  // empty: absent
  void put(std::string_view key, std::string value) { parts_.emplace_back(key, std::move(value)); }
  std::string text() const;
  const TextParts& parts() const { return parts_; }

 private:
  TextParts parts_;
};

// A list of devices: explicit, or a transposed iota.
struct Devices {
  Ints listed;
  Ints reshape, transpose;  // iota of the product of `reshape`, transposed
};

// OpSharding.
struct Sharding {
  enum class Kind { replicated, maximal, tuple, other, manual, unknown, unreduced };
  Kind kind = Kind::replicated;
  Ints tile;
  Devices devices;
  bool replicate_last = false;
  std::vector<Kind> last_tile_dims;
  std::vector<Sharding> elements;
  bool in_group = false, like_group = false;
  int64_t group = 0;
};
Sharding read_sharding(std::string_view text);
std::string sharding_text(const Sharding& sharding);

// The attribute replica_groups.
struct ReplicaGroups {
  std::vector<Ints> groups;  // explicit
  Ints extents;              // else [groups,size], of the devices below
  Devices devices;
  bool is_counted() const { return !extents.empty(); }
};
ReplicaGroups read_replica_groups(std::string_view text);
std::string replica_groups_text(const ReplicaGroups& groups);

// One row of buffer_donor={ (1, {0}), (2, {}) }.
struct Donor {
  int64_t parameter = 0;
  Ints index;
};
std::vector<Donor> read_donors(std::string_view text);
std::string donors_text(const std::vector<Donor>& donors);

}  // namespace heddle::import

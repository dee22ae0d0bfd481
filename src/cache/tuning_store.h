// Tuning records on disk: one SQLite file, shared by processes, and a text form for exchange.
//
// A record belongs to a device (a hash of its target text, and its name for readers) and a key;
// both, and the record itself, are opaque texts here.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace heddle::cache {

struct TuningRecord {
  std::string device, key, record;
  double ns = 0, untuned_ns = 0;  // medians: with the record, and with the static rule's choice
  std::string measured;           // all candidates: "record: ns", separated by semicolons
};

// The file of the records in a cache folder.
std::string tuning_file(const std::string& directory);

// Not thread-safe; several processes may use one file.
class TuningStore {
 public:
  // Opens tuning_file(directory), or creates it. Error (machine): cannot be opened or created; a
  // damaged file is moved aside and replaced.
  static Result<TuningStore> open(const std::string& directory);
  // The records of a device, without creating anything; empty if there is no file.
  static Result<std::map<std::string, std::string>> load(const std::string& directory,
                                                         const std::string& device);
  ~TuningStore();
  TuningStore(TuningStore&&) noexcept;
  TuningStore& operator=(TuningStore&&) noexcept;

  const std::string& path() const;
  // Replaces the record of the same device and key. Error: machine.
  Status put(const TuningRecord& record);
  // Sorted by device and key; of one device, or ("") of all.
  Result<std::vector<TuningRecord>> records(const std::string& device) const;
  Status clear();

 private:
  struct State;
  explicit TuningStore(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// One line per record, fields separated by tabs; parse is the inverse. Error (user): line, got,
// wanted.
std::string to_text(const std::vector<TuningRecord>& records);
Result<std::vector<TuningRecord>> parse_tuning_text(std::string_view text);

}  // namespace heddle::cache

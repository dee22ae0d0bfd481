// Tuning records on disk: one SQLite file, shared by processes, and a text form to pass on.
//
// A record belongs to a device (its target text as a hash, and its name to read) and a key; both,
// and the record itself, are texts that this folder does not understand.
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
  double ns = 0, untuned_ns = 0;  // medians: of the record, and of the static rule's choice
  std::string measured;           // all that was tried: "record: ns" by semicolons
};

// The file of the records in a cache folder.
std::string tuning_file(const std::string& directory);

// Not thread-safe; several processes may use one file.
class TuningStore {
 public:
  // tuning_file(directory), made where it is missing. Error (machine): cannot be opened or made; a
  // damaged file is moved aside and begun anew.
  static Result<TuningStore> open(const std::string& directory);
  // Without making anything: the records of a device, empty where there is no file.
  static Result<std::map<std::string, std::string>> load(const std::string& directory,
                                                         const std::string& device);
  ~TuningStore();
  TuningStore(TuningStore&&) noexcept;
  TuningStore& operator=(TuningStore&&) noexcept;

  const std::string& path() const;
  // Replaces what the device and key had. Error: machine.
  Status put(const TuningRecord& record);
  // In the order of device and key; of one device, or ("") of all.
  Result<std::vector<TuningRecord>> records(const std::string& device) const;
  Status clear();

 private:
  struct State;
  explicit TuningStore(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// One line a record, fields by tabs; parse is the inverse. Error (user): line, got, wanted.
std::string to_text(const std::vector<TuningRecord>& records);
Result<std::vector<TuningRecord>> parse_tuning_text(std::string_view text);

}  // namespace heddle::cache

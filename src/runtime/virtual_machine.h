// The implementation of the `virtual` device (virtual_device.h): its memory, the work on its
// streams, and the order in which that runs. All protected by `mutex`.
#pragma once

#include <climits>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "runtime/race_check.h"
#include "runtime/virtual_device.h"

namespace heddle::runtime {

struct VirtualMachine {
  struct Event {
    int64_t recorded = 0, happened = 0;  // counts
    int64_t lost_from = INT64_MAX;       // records from this one on never happen
    RaceCheck::Clock clock;              // of the last record
  };
  struct Call {
    void (*function)(void* argument) = nullptr;
    void* argument = nullptr;
    RaceCheck::Clock clock;
  };
  // An item of work queued on a stream.
  struct Work {
    enum class Kind : uint8_t { launch, copy, record, wait, call } kind;
    heddle_hal_launch launch{};
    std::vector<void*> buffers;
    std::vector<int64_t> dims;
    void* to = nullptr;
    const void* from = nullptr;
    std::vector<char> bytes;  // copied from the host; then `from` is null
    int64_t size = 0;
    std::shared_ptr<Event> event;
    int64_t number = 0;  // of this record among the event's
    Call call;
  };
  struct Stream {
    size_t number = 0;
    bool lost = false;  // refuses further work
    std::deque<Work> queue;
  };

  explicit VirtualMachine(VirtualOptions wanted);
  ~VirtualMachine();

  // As the functions of the HAL. Error: returns 1 and sets last_error().
  static int fail(std::string text);
  static const char* last_error();
  int allocate(int64_t bytes, void** memory);
  void release(void* memory, int64_t bytes);
  int launch(Stream& stream, const heddle_hal_launch& wanted);
  int copy(Stream& stream, void* to, const void* from, int64_t bytes);
  int record(Stream& stream, const std::shared_ptr<Event>& event);
  int wait_for(Stream& stream, const std::shared_ptr<Event>& event);
  int call_on(Stream& stream, Call call);
  int is_done(Event& event, int32_t* done);
  int create_stream(heddle_hal_stream** stream);
  void destroy_stream(Stream& stream);
  std::shared_ptr<Event> create_event();  // null: an error
  int wait();
  int drain();  // runs everything; error: a stream waits for an event that never happens
  // Makes all due calls before it returns. Call without holding `mutex`.
  void call_back();
  bool is_broken();

  VirtualOptions options;
  std::mutex mutex, calling;
  std::vector<std::unique_ptr<Stream>> streams;  // null: destroyed; 0: of launch() and copy()
  std::vector<Call> due;
  VirtualCounts counts;

 private:
  bool is_ours(const void* address, int64_t bytes) const;
  int break_down(std::string why);
  bool is_lost() const;
  bool is_refused(Stream& stream);
  void note_access(Stream& stream, const void* at, int64_t bytes, bool writes,
                   const std::string& what);
  int put(Stream& stream, Work work);
  static bool can_go_on(const Stream& stream);
  Stream* choose();
  void run_launch(const Work& work);
  void step(Stream& stream);

  std::mt19937_64 random;
  std::map<char*, int64_t> blocks;
  std::vector<std::weak_ptr<Event>> events;
  RaceCheck races;
  std::string broken, first_race;
  size_t starved = 0;
};

}  // namespace heddle::runtime

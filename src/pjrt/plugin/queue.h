// The ordered work of one device.
#pragma once

#include <atomic>
#include <functional>

namespace pjrt::plugin {

// Runs tasks one after another on a thread of its own, which starts with the first task. After a
// fork the child has a new, empty queue: what was queued belongs to the parent.
class Queue {
 public:
  Queue();
  // Finishes what is queued, then stops.
  ~Queue();
  Queue(const Queue&) = delete;
  // Exceptions must not leave the task.
  void Push(std::function<void()> task);
  // True if nothing is queued or running, at this moment.
  bool idle() const;

 private:
  struct State;
  State& Current() const;
  mutable std::atomic<State*> state_;
};

}  // namespace pjrt::plugin

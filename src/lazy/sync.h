// Running recorded work: a graph is cut from what is pending, its program is looked up or compiled,
// and started; the results become the tensors' data at once, though still in the making.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lazy/device.h"
#include "lazy/node.h"
#include "lazy/storage.h"

namespace lazy {

// Which buffers a program may write its results into: those whose place its results take and that
// the user wishes to donate, the latter alone, or none.
enum class Donating : uint8_t { kAll, kWishes, kNothing };

// Computes everything that is pending on the device. With `wait`, returns when it is computed.
// Throws hlo::Error: a compile's, an earlier execution's (once), or with `wait` this one's; or that
// of a check of values (value_check.h), once, after which everything is computed and started.
void Sync(Device* device, bool wait = false, Donating donating = Donating::kAll);
// The same of what those of these storages hold that are the device's, and of noted collectives and
// assertions, as those keep their order. Other recorded work stays, and computes again what it has
// in common.
void SyncOnly(Device* device, std::span<const Reference<Storage>> storages, bool wait,
              Donating donating);
// How many times what was pending on the device has been started.
int64_t CutCount(const Device* device);
// Notes that a recorded operation is one that other processes take part in: it runs at the next
// sync, after those noted before, whether or not its result is wanted. The line that this thread
// carries out (SourceScope) goes with it. In a capture it is noted there (capture.h).
void NoteCollective(Device* device, const Reference<Node>& node);
// The same of an operation that is recorded for the sake of its check (value_check.h), outside of
// captures.
void NoteAssertion(Device* device, const Reference<Node>& node);
// Data for each of the values, whose graph runs alone, as an operation of eager mode (eager.h): no
// observer is told of it. With `wait`, returns when they are computed. Under SyncMutex.
std::vector<Value> ComputeEagerly(Device* device, std::span<const Value> values, bool wait);
// In eager mode, what a RecordOnly has kept: starts it as one operation.
void SyncEagerly(Device* device);
// The data of a storage's value; syncs when it is recorded work.
Reference<Data> Materialized(const Reference<Storage>& storage);
// The data of a value that no storage holds (a view's part).
Reference<Data> Evaluate(Device* device, const Value& value);

}  // namespace lazy

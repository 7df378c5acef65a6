// How a client that is one of several processes is told the secret of their job.
#pragma once

namespace pjrt {

// The name of the option of Client_Create (a string of any bytes), and of the attribute by which a
// plugin says that it takes that option.
inline constexpr char kJobSecret[] = "job_secret";

}  // namespace pjrt

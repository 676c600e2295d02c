# The headers that declare each name, as "HEADER: NAME...". If several headers precede the colon, any one of them is enough.
#
# Omits names that many headers declare, such as std::get, std::hash, std::size, std::begin and std::erase_if.
set(names_of_headers
    "algorithm: std::all_of std::any_of std::clamp std::copy std::copy_if std::copy_n std::count std::count_if std::equal std::fill std::fill_n
     std::find std::find_if std::for_each std::generate std::is_sorted std::lower_bound std::max std::max_element std::min std::min_element
     std::minmax std::minmax_element std::mismatch std::next_permutation std::none_of std::nth_element std::partition std::remove
     std::remove_if std::replace std::reverse std::rotate std::search std::shuffle std::sort std::stable_sort std::transform std::unique
     std::upper_bound std::ranges::all_of std::ranges::any_of std::ranges::binary_search std::ranges::copy std::ranges::copy_if
     std::ranges::copy_n std::ranges::count std::ranges::count_if std::ranges::equal std::ranges::equal_range std::ranges::fill
     std::ranges::fill_n std::ranges::find std::ranges::find_if std::ranges::find_if_not std::ranges::for_each std::ranges::generate
     std::ranges::includes std::ranges::is_sorted std::ranges::lower_bound std::ranges::max std::ranges::max_element std::ranges::min
     std::ranges::min_element std::ranges::minmax std::ranges::minmax_element std::ranges::mismatch std::ranges::move
     std::ranges::lexicographical_compare std::ranges::next_permutation std::ranges::none_of std::ranges::nth_element std::ranges::partition std::ranges::partition_point std::ranges::remove
     std::ranges::remove_if std::ranges::replace std::ranges::replace_if std::ranges::reverse std::ranges::rotate std::ranges::search std::ranges::shuffle
     std::ranges::sort std::ranges::stable_partition std::ranges::stable_sort std::ranges::swap_ranges std::ranges::transform std::ranges::unique std::ranges::upper_bound"
    "any: std::any std::any_cast"
    "array: std::array std::to_array"
    "atomic: std::atomic std::atomic_bool std::atomic_flag std::atomic_int std::atomic_ref std::atomic_thread_fence std::memory_order
     std::memory_order_acq_rel std::memory_order_acquire std::memory_order_relaxed std::memory_order_release std::memory_order_seq_cst"
    "barrier: std::barrier"
    "bit: std::bit_cast std::bit_ceil std::bit_floor std::bit_width std::countl_one std::countl_zero std::countr_one std::countr_zero std::endian
     std::has_single_bit std::popcount std::rotl std::rotr"
    "bitset: std::bitset"
    "charconv: std::chars_format std::from_chars std::to_chars"
    "chrono: std::chrono"
    "cmath cstdlib: std::abs"
    "cmath: std::acos std::asin std::atan std::atan2 std::cbrt std::ceil std::copysign std::cos std::cosh std::erf std::exp std::exp2 std::expm1
     std::fabs std::floor std::fma std::fmax std::fmin std::fmod std::fpclassify std::frexp std::hypot std::ilogb std::isfinite std::isinf std::isnan
     std::isnormal std::ldexp std::lerp std::llround std::log std::log10 std::log1p std::log2 std::logb std::lround std::modf std::nan std::nearbyint
     std::nextafter std::nexttoward std::pow std::remainder std::rint std::round std::scalbn std::signbit std::sin std::sinh std::sqrt std::tan
     std::tanh std::trunc INFINITY NAN"
    "codecvt: std::codecvt_utf8"
    "compare: std::compare_three_way std::partial_ordering std::strong_ordering std::three_way_comparable std::weak_ordering"
    "complex: std::complex"
    "concepts: std::assignable_from std::common_with std::constructible_from std::convertible_to std::copy_constructible std::copyable
     std::default_initializable std::derived_from std::destructible std::equality_comparable std::floating_point std::integral std::invocable
     std::movable std::move_constructible std::predicate std::regular std::regular_invocable std::same_as std::semiregular
     std::signed_integral std::swappable std::totally_ordered std::unsigned_integral"
    "condition_variable: std::condition_variable std::condition_variable_any std::cv_status"
    "cassert: assert"
    "cctype: std::isalnum std::isalpha std::isdigit std::islower std::isprint std::isspace std::isupper std::isxdigit std::tolower std::toupper"
    "cerrno: errno"
    "cfenv: std::fegetround std::fesetround std::feclearexcept std::fetestexcept"
    "cfloat: DBL_MAX FLT_EPSILON FLT_MAX FLT_MIN"
    "climits: CHAR_BIT INT_MAX INT_MIN LLONG_MAX LONG_MAX PATH_MAX SSIZE_MAX UINT_MAX"
    "clocale: std::localeconv std::setlocale"
    "csignal signal.h: std::raise std::sig_atomic_t std::signal SIGABRT SIGCHLD SIGINT SIGKILL SIGPIPE SIGSEGV SIGSTOP SIGTERM SIGUSR1 SIG_DFL SIG_IGN
     ::kill"
    "signal.h: ::sigaction ::sigaddset ::sigemptyset ::sigfillset ::sigismember ::sigprocmask ::sigtimedwait SIG_BLOCK SIG_SETMASK"
    "cstdarg: std::va_list"
    "cstddef: std::byte std::max_align_t std::nullptr_t std::ptrdiff_t std::size_t std::to_integer offsetof"
    "cstdint: std::int8_t std::int16_t std::int32_t std::int64_t std::intptr_t std::uint8_t std::uint16_t std::uint32_t std::uint64_t std::uintptr_t
     INT32_MAX INT64_MAX UINT32_MAX UINT64_MAX"
    "cstdio: std::fclose std::feof std::ferror std::fflush std::fgets std::FILE std::fopen std::fprintf std::fputc std::fputs std::fread std::freopen std::fseek
     std::ftell std::fwrite std::getchar std::perror std::printf std::putchar std::puts std::rename std::snprintf std::sscanf std::tmpfile
     std::vfprintf std::vsnprintf stderr stdout"
    "cstdlib: std::abort std::aligned_alloc std::atexit std::atof std::atoi std::calloc std::exit std::_Exit std::free std::getenv std::ldiv
     std::malloc std::mkstemp std::quick_exit std::rand std::realloc std::srand std::strtod std::strtof std::strtol std::strtoll std::strtoul
     std::strtoull std::system EXIT_FAILURE EXIT_SUCCESS"
    "cstring: std::memchr std::memcmp std::memcpy std::memmove std::memset std::strcat std::strchr std::strcmp std::strcpy std::strcspn
     std::strerror std::strlen std::strncmp std::strncpy std::strrchr std::strspn std::strstr std::strtok"
    "ctime: std::clock std::gmtime std::localtime std::mktime std::strftime std::time std::time_t std::timespec std::tm"
    "deque: std::deque"
    "exception: std::current_exception std::exception std::exception_ptr std::get_terminate std::make_exception_ptr std::nested_exception
     std::rethrow_exception std::rethrow_if_nested std::set_terminate std::terminate std::throw_with_nested std::uncaught_exceptions"
    "filesystem: std::filesystem"
    "forward_list: std::forward_list"
    "fstream: std::basic_ifstream std::basic_ofstream std::filebuf std::fstream std::ifstream std::ofstream"
    "functional: std::bind std::bind_front std::bit_and std::bit_or std::bit_xor std::cref std::divides std::equal_to std::function std::greater
     std::greater_equal std::identity std::invoke std::less std::less_equal std::logical_and std::logical_or std::mem_fn std::minus
     std::modulus std::multiplies std::negate std::not_fn std::plus std::ref std::reference_wrapper std::ranges::equal_to std::ranges::greater
     std::ranges::less"
    "future: std::async std::future std::launch std::packaged_task std::promise std::shared_future"
    "initializer_list: std::initializer_list"
    "iomanip: std::put_time std::quoted std::setfill std::setprecision std::setw"
    "iostream: std::cerr std::cin std::clog std::cout"
    "istream ostream iostream fstream sstream: std::istream std::ostream std::endl std::flush"
    "iterator: std::advance std::back_insert_iterator std::back_inserter std::bidirectional_iterator std::contiguous_iterator std::distance
     std::forward_iterator std::front_inserter std::input_iterator std::inserter std::istream_iterator std::istreambuf_iterator
     std::iter_reference_t std::iter_value_t std::iterator_traits std::make_move_iterator std::make_reverse_iterator std::move_iterator std::next
     std::ostream_iterator std::ostreambuf_iterator std::output_iterator std::prev std::random_access_iterator std::reverse_iterator
     std::sentinel_for std::default_sentinel"
    "latch: std::latch"
    "limits: std::numeric_limits"
    "list: std::list"
    "locale: std::locale std::numpunct std::use_facet"
    "map: std::map std::multimap"
    "memory: std::addressof std::align std::allocate_shared std::allocator std::allocator_traits std::assume_aligned std::const_pointer_cast
     std::construct_at std::default_delete std::destroy std::destroy_at std::destroy_n std::dynamic_pointer_cast std::enable_shared_from_this
     std::make_shared std::make_unique std::pointer_traits std::shared_ptr std::static_pointer_cast std::to_address std::uninitialized_copy
     std::uninitialized_default_construct_n std::uninitialized_fill std::uninitialized_value_construct_n std::unique_ptr std::weak_ptr"
    "memory_resource: std::pmr"
    "mutex: std::adopt_lock std::call_once std::defer_lock std::lock std::lock_guard std::mutex std::once_flag std::recursive_mutex std::scoped_lock
     std::timed_mutex std::try_to_lock std::unique_lock"
    "new: std::align_val_t std::bad_alloc std::bad_array_new_length std::destroying_delete_t std::hardware_constructive_interference_size
     std::hardware_destructive_interference_size std::launder std::nothrow std::nothrow_t"
    "numbers: std::numbers"
    "numeric: std::accumulate std::adjacent_difference std::exclusive_scan std::gcd std::inclusive_scan std::inner_product std::iota std::lcm
     std::midpoint std::partial_sum std::reduce std::transform_reduce"
    "optional: std::make_optional std::nullopt std::nullopt_t std::optional"
    "random: std::bernoulli_distribution std::discrete_distribution std::mt19937 std::mt19937_64 std::minstd_rand std::normal_distribution
     std::random_device std::seed_seq std::uniform_int_distribution std::uniform_random_bit_generator std::uniform_real_distribution"
    "ranges: std::views std::ranges::borrowed_range std::ranges::common_range std::ranges::contiguous_range std::ranges::forward_range
     std::ranges::input_range std::ranges::iterator_t std::ranges::random_access_range std::ranges::range std::ranges::range_reference_t
     std::ranges::range_size_t std::ranges::range_value_t std::ranges::sized_range std::ranges::subrange std::ranges::view
     std::ranges::view_interface std::ranges::views std::ranges::enable_borrowed_range std::ranges::enable_view"
    "ratio chrono: std::micro std::milli std::nano std::ratio"
    "regex: std::regex std::regex_match std::regex_replace std::regex_search std::smatch std::sregex_iterator"
    "semaphore: std::binary_semaphore std::counting_semaphore"
    "set: std::multiset std::set"
    "shared_mutex: std::shared_lock std::shared_mutex"
    "source_location: std::source_location"
    "span: std::as_bytes std::as_writable_bytes std::dynamic_extent std::span"
    "sstream: std::istringstream std::ostringstream std::stringstream"
    "stack: std::stack"
    "queue: std::priority_queue std::queue"
    "stdexcept: std::domain_error std::invalid_argument std::length_error std::logic_error std::out_of_range std::overflow_error
     std::range_error std::runtime_error std::underflow_error"
    "stop_token thread: std::stop_source std::stop_token"
    "stop_token: std::stop_callback"
    "streambuf: std::basic_streambuf std::streambuf"
    "string: std::basic_string std::char_traits std::getline std::stod std::stof std::stoi std::stol std::stoll std::stoul std::stoull
     std::string std::to_string std::u8string std::wstring"
    "string_view: std::basic_string_view std::string_view"
    "syncstream: std::osyncstream"
    "system_error: std::errc std::error_category std::error_code std::error_condition std::generic_category std::make_error_code
     std::make_error_condition std::system_category std::system_error"
    "thread: std::jthread std::this_thread std::thread"
    "tuple: std::apply std::forward_as_tuple std::ignore std::make_from_tuple std::make_tuple std::tie std::tuple std::tuple_cat"
    "type_traits: std::add_const_t std::add_pointer_t std::bool_constant std::common_reference_t std::common_type_t std::conditional
     std::conditional_t std::conjunction_v std::decay_t std::disjunction_v std::enable_if_t std::false_type std::has_unique_object_representations_v
     std::integral_constant std::invoke_result_t std::is_abstract_v std::is_aggregate_v std::is_arithmetic_v std::is_array_v std::is_assignable_v
     std::is_base_of_v std::is_class_v std::is_const_v std::is_constant_evaluated std::is_constructible_v std::is_convertible_v
     std::is_copy_assignable_v std::is_copy_constructible_v std::is_default_constructible_v std::is_destructible_v std::is_empty_v std::is_enum_v
     std::is_final_v std::is_floating_point_v std::is_function_v std::is_integral_v std::is_invocable_r_v std::is_invocable_v
     std::is_lvalue_reference_v std::is_move_assignable_v std::is_move_constructible_v std::is_nothrow_constructible_v
     std::is_nothrow_default_constructible_v std::is_nothrow_destructible_v std::is_nothrow_invocable_v std::is_nothrow_move_assignable_v
     std::is_nothrow_move_constructible_v std::is_object_v std::is_pointer_v std::is_polymorphic_v std::is_reference_v std::is_rvalue_reference_v
     std::is_same std::is_same_v std::is_scalar_v std::is_signed_v std::is_standard_layout_v std::is_trivial_v std::is_trivially_copyable
     std::is_trivially_copyable_v std::is_trivially_destructible_v std::is_unsigned_v std::is_void_v std::make_signed_t std::make_unsigned_t
     std::negation_v std::remove_const_t std::remove_cv_t std::remove_cvref_t std::remove_extent_t std::remove_pointer_t std::remove_reference_t
     std::true_type std::type_identity std::type_identity_t std::underlying_type_t std::void_t"
    "typeindex: std::type_index"
    "typeinfo: std::bad_cast std::type_info"
    "unordered_map: std::unordered_map std::unordered_multimap"
    "unordered_set: std::unordered_multiset std::unordered_set"
    "utility: std::as_const std::cmp_equal std::cmp_greater std::cmp_greater_equal std::cmp_less std::cmp_less_equal std::cmp_not_equal
     std::declval std::exchange std::forward std::in_range std::index_sequence std::index_sequence_for std::integer_sequence std::make_index_sequence
     std::make_integer_sequence std::make_pair std::pair std::piecewise_construct"
    "utility algorithm: std::move std::swap"
    "variant: std::bad_variant_access std::get_if std::holds_alternative std::monostate std::variant std::variant_alternative_t
     std::variant_size_v std::visit"
    "vector: std::vector"
    "version: __cpp_lib_bit_cast"
    # POSIX
    "dlfcn.h: ::dlclose ::dlerror ::dlinfo ::dlopen ::dlsym RTLD_DEFAULT RTLD_DI_LINKMAP RTLD_LAZY RTLD_LOCAL RTLD_NOLOAD RTLD_NOW"
    "fcntl.h: ::fcntl ::open ::openat O_CLOEXEC O_CREAT O_EXCL O_NONBLOCK O_RDONLY O_RDWR O_TRUNC O_WRONLY"
    "ifaddrs.h: ::freeifaddrs ::getifaddrs"
    "netdb.h: ::freeaddrinfo ::gai_strerror ::getaddrinfo ::getnameinfo"
    "poll.h: ::poll ::ppoll POLLHUP POLLIN POLLOUT"
    "pthread.h: ::pthread_create ::pthread_join ::pthread_self"
    "signal.h csignal: ::pthread_kill ::pthread_sigmask"
    "sched.h: ::sched_getaffinity ::sched_setaffinity ::sched_yield"
    "sys/file.h: ::flock LOCK_EX LOCK_NB LOCK_UN"
    "sys/mman.h: ::madvise ::memfd_create ::mmap ::mprotect ::munmap ::shm_open ::shm_unlink MAP_FAILED MAP_PRIVATE MAP_SHARED PROT_READ PROT_WRITE"
    "sys/prctl.h: ::prctl"
    "sys/resource.h: ::getrlimit ::getrusage ::setrlimit RLIMIT_CORE RLIMIT_NOFILE RLIMIT_FSIZE RLIMIT_STACK"
    "sys/socket.h: ::accept ::accept4 ::bind ::connect ::getpeername ::getsockname ::getsockopt ::listen ::recv ::recvmsg ::send ::sendmsg
     ::setsockopt ::shutdown ::socket ::socketpair SHUT_RD SHUT_RDWR SHUT_WR SOCK_STREAM SOL_SOCKET"
    "sys/stat.h: ::umask ::chmod ::fchmod ::fstat ::fstatat ::lstat ::mkdir ::mkfifo ::stat"
    "sys/syscall.h: SYS_futex SYS_pidfd_open"
    "sys/uio.h: ::process_vm_readv ::process_vm_writev ::readv ::writev"
    "sys/wait.h: ::waitid ::waitpid WEXITSTATUS WIFEXITED WIFSIGNALED WNOHANG WTERMSIG"
    "stdlib.h cstdlib: ::mkdtemp ::mkstemp ::setenv ::unsetenv"
    "stdio.h cstdio: ::fdopen ::fileno ::rename"
    "string.h: ::explicit_bzero ::strsignal"
    "string.h cstring: ::strnlen"
    "dirent.h: ::closedir ::opendir ::readdir"
    "sys/eventfd.h: ::eventfd EFD_CLOEXEC EFD_NONBLOCK"
    "sys/mount.h: ::mount ::umount ::umount2"
    "sys/signalfd.h: ::signalfd SFD_CLOEXEC SFD_NONBLOCK"
    "unistd.h: ::_exit ::access ::chdir ::close ::dup ::dup2 ::execv ::execve ::execvp ::fork ::fsync ::ftruncate ::getcwd ::getegid ::geteuid ::getgid ::getuid ::gethostname ::getpid
     ::getppid ::isatty ::link ::lseek ::pipe ::pipe2 ::pread ::pwrite ::read ::readlink ::rmdir ::setgid ::setpgid ::setsid ::setuid ::syscall ::sysconf ::unlink ::usleep ::write
     STDERR_FILENO STDIN_FILENO STDOUT_FILENO"
    # Other libraries
    "fmt/format.h: fmt::format fmt::format_string fmt::format_to fmt::format_to_n fmt::formatter fmt::make_format_args fmt::print fmt::runtime
     fmt::to_string fmt::vformat fmt::memory_buffer"
    "fmt/ranges.h: fmt::join"
    "fmt/chrono.h: fmt::gmtime fmt::localtime"
    "fmt/ostream.h: fmt::streamed"
    "fmt/color.h: fmt::styled fmt::fg fmt::bg"
    "nlohmann/json.hpp: nlohmann::json nlohmann::ordered_json"
    "CLI/CLI.hpp: CLI::App CLI::Range CLI::IsMember CLI::Option CLI::Success CLI::PositiveNumber CLI::NonNegativeNumber CLI::ExistingFile CLI::ParseError CLI::ValidationError CLI::Validator"
    "Eigen/Core: Eigen::Map Eigen::Matrix Eigen::Dynamic Eigen::Ref Eigen::Index Eigen::Stride Eigen::OuterStride")

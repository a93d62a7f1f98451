package remote

// RetryAfter is how the header is read.
var RetryAfter = retryAfter

//! Who a request speaks for: tokens, sessions, sign-in.

//! Distinct types for the things that are counted, so that one is never taken for another.

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $inner);

        impl $name {
            /// The number as an index into the settings' list of the same kind.
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

id!(/// One client request, given by the host, unique within the process.
    RequestId(u64));
id!(/// One attempt at an upstream, given by the engine, unique within the process.
    AttemptId(u64));
id!(/// A tenant: its index in [`crate::settings::Settings::tenants`].
    TenantId(u32));
id!(/// A pool (one model and its deployments): its index in [`crate::settings::Settings::pools`].
    PoolId(u32));
id!(/// A deployment: its index in [`crate::settings::Settings::deployments`].
    DeploymentId(u32));

//! Distinct types for the things that are counted, so that one is never taken for another.

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $inner);
    };
    ($(#[$doc:meta])* $name:ident: index) => {
        id!($(#[$doc])* $name(u32));

        impl $name {
            /// The number as an index into the settings' list of the same kind.
            pub const fn index(self) -> usize {
                self.0 as usize
            }

            /// The id of the thing at `index`; the settings never hold 2^32 of anything.
            pub fn from_index(index: usize) -> Self {
                Self(u32::try_from(index).expect("the settings hold fewer than 2^32 of anything"))
            }
        }
    };
}

id!(/// One client request, given by the host, unique within the process.
    RequestId(u64));
id!(/// One attempt at an upstream, given by the engine, unique within the process.
    AttemptId(u64));
id!(/// A tenant: its index in [`crate::settings::Settings::tenants`].
    TenantId: index);
id!(/// A pool (one model and its deployments): its index in [`crate::settings::Settings::pools`].
    PoolId: index);
id!(/// A deployment: its index in [`crate::settings::Settings::deployments`].
    DeploymentId: index);

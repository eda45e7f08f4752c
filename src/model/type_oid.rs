use super::TypeOid;

/// The built-in types that are told apart somewhere, by their fixed numbers (`pg_type.dat`).
impl TypeOid {
    /// `boolean`.
    pub const BOOL: Self = Self(16);
    /// `bytea`.
    pub const BYTEA: Self = Self(17);
    /// `bigint`.
    pub const INT8: Self = Self(20);
    /// `smallint`.
    pub const INT2: Self = Self(21);
    /// `integer`.
    pub const INT4: Self = Self(23);
    /// `text`.
    pub const TEXT: Self = Self(25);
    /// `oid`.
    pub const OID: Self = Self(26);
    /// `json`.
    pub const JSON: Self = Self(114);
    /// `character(n)`, blank-padded.
    pub const BPCHAR: Self = Self(1042);
    /// `character varying(n)`.
    pub const VARCHAR: Self = Self(1043);
    /// `uuid`.
    pub const UUID: Self = Self(2950);
    /// `jsonb`.
    pub const JSONB: Self = Self(3802);

    /// Whether the type was made in the database (an enum, a domain, an extension's type) and
    /// so has no fixed number: those begin at `FirstNormalObjectId`.
    pub const fn is_user_defined(self) -> bool {
        self.0 >= 16_384
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_types_are_not_user_defined() {
        assert!(!TypeOid::JSONB.is_user_defined() && !TypeOid(16_383).is_user_defined());
        assert!(TypeOid(16_384).is_user_defined());
    }
}

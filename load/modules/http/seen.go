package k6http

import (
	"crypto/tls"

	"golang.org/x/crypto/ocsp"
)

// tlsSeen is what a script learns of a secure connection.
type tlsSeen struct {
	version, cipherSuite string
	ocsp                 ocspSeen
}

// ocspSeen is a stapled answer of a certificate authority. Times are in
// seconds since 1970, 0 without.
type ocspSeen struct {
	status, reason                              string
	producedAt, thisUpdate, nextUpdate, revoked int64
}

func seenTLS(state *tls.ConnectionState) *tlsSeen {
	seen := &tlsSeen{version: versionName(state.Version), cipherSuite: tls.CipherSuiteName(state.CipherSuite),
		ocsp: ocspSeen{status: ocspUnknown}}
	if len(state.OCSPResponse) == 0 {
		return seen
	}
	answer, err := ocsp.ParseResponse(state.OCSPResponse, nil)
	if err != nil {
		return seen // nothing that can be told
	}
	seen.ocsp = ocspSeen{producedAt: answer.ProducedAt.Unix(), thisUpdate: answer.ThisUpdate.Unix(), nextUpdate: answer.NextUpdate.Unix()}
	switch answer.Status {
	case ocsp.Good:
		seen.ocsp.status = ocspGood
	case ocsp.Revoked:
		seen.ocsp.status, seen.ocsp.revoked, seen.ocsp.reason = ocspRevoked, answer.RevokedAt.Unix(), ocspReasons()[answer.RevocationReason]
	case ocsp.ServerFailed:
		seen.ocsp.status = ocspServerFailed
	default:
		seen.ocsp.status = ocspUnknown
	}
	return seen
}

// Texts that scripts see for an OCSP status.
const (
	ocspGood         = "good"
	ocspRevoked      = "revoked"
	ocspServerFailed = "server_failed"
	ocspUnknown      = "unknown"
)

func ocspReasons() map[int]string {
	return map[int]string{ocsp.Unspecified: "unspecified", ocsp.KeyCompromise: "key_compromise", ocsp.CACompromise: "ca_compromise",
		ocsp.AffiliationChanged: "affiliation_changed", ocsp.Superseded: "superseded", ocsp.CessationOfOperation: "cessation_of_operation",
		ocsp.CertificateHold: "certificate_hold", ocsp.RemoveFromCRL: "remove_from_crl", ocsp.PrivilegeWithdrawn: "privilege_withdrawn",
		ocsp.AACompromise: "aa_compromise"}
}

// constants are the texts that the module exports by name.
func constants() map[string]string {
	return map[string]string{
		"SSL_3_0": "ssl3.0", "TLS_1_0": "tls1.0", "TLS_1_1": "tls1.1", "TLS_1_2": "tls1.2", "TLS_1_3": "tls1.3",
		"OCSP_STATUS_GOOD": ocspGood, "OCSP_STATUS_REVOKED": ocspRevoked,
		"OCSP_STATUS_SERVER_FAILED": ocspServerFailed, "OCSP_STATUS_UNKNOWN": ocspUnknown,
		"OCSP_REASON_UNSPECIFIED": "unspecified", "OCSP_REASON_KEY_COMPROMISE": "key_compromise",
		"OCSP_REASON_CA_COMPROMISE": "ca_compromise", "OCSP_REASON_AFFILIATION_CHANGED": "affiliation_changed",
		"OCSP_REASON_SUPERSEDED": "superseded", "OCSP_REASON_CESSATION_OF_OPERATION": "cessation_of_operation",
		"OCSP_REASON_CERTIFICATE_HOLD": "certificate_hold", "OCSP_REASON_REMOVE_FROM_CRL": "remove_from_crl",
		"OCSP_REASON_PRIVILEGE_WITHDRAWN": "privilege_withdrawn", "OCSP_REASON_AA_COMPROMISE": "aa_compromise",
	}
}

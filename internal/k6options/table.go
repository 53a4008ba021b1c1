package k6options

// option is one thing that can be set.
type option struct {
	// script is the name of the option in scripts; empty for what only the
	// command line and its surroundings decide.
	script      string
	flag, short string // no flag when empty
	env         string // of K6_<env> and METACHAOS_<env>; none when empty
	kind        kind
	usage       string
}

// scriptOptions can also stand in scripts.
func scriptOptions() []option {
	return []option{
		{script: "vus", flag: "vus", short: "u", env: "VUS", kind: count(), usage: "number of virtual users"},
		{script: "iterations", flag: "iterations", short: "i", env: "ITERATIONS", kind: count(), usage: "number of iterations over all virtual users"},
		{script: "duration", flag: "duration", short: "d", env: "DURATION", kind: span(), usage: "how long to run"},
		{script: "stages", flag: "stage", short: "s", env: "STAGES", kind: stages(), usage: "a stage; repeat for more"},
		{script: "executionSegment", flag: "execution-segment", env: "EXECUTION_SEGMENT", kind: text("FROM:TO"), usage: "the part of the load to run, for example 0:1/4"},
		{script: "executionSegmentSequence", flag: "execution-segment-sequence", env: "EXECUTION_SEGMENT_SEQUENCE", kind: text("POINTS"), usage: "where all parts of the load begin and end, for example 0,1/4,1"},
		{script: "paused", flag: "paused", short: "p", env: "PAUSED", kind: toggle(), usage: "start paused"},
		{script: "noSetup", flag: "no-setup", env: "NO_SETUP", kind: toggle(), usage: "skip setup()"},
		{script: "noTeardown", flag: "no-teardown", env: "NO_TEARDOWN", kind: toggle(), usage: "skip teardown()"},
		{script: "setupTimeout", env: "SETUP_TIMEOUT", kind: span()},
		{script: "teardownTimeout", env: "TEARDOWN_TIMEOUT", kind: span()},
		{script: "maxRedirects", flag: "max-redirects", env: "MAX_REDIRECTS", kind: count(), usage: "follow at most that many redirects (default 10)"},
		{script: "batch", flag: "batch", env: "BATCH", kind: count(), usage: "requests of one batch at once (default 20)"},
		{script: "batchPerHost", flag: "batch-per-host", env: "BATCH_PER_HOST", kind: count(), usage: "requests of one batch at once for a host; 0 is no limit (default 6)"},
		{script: "rps", flag: "rps", env: "RPS", kind: count(), usage: "limit of HTTP requests per second"},
		{script: "userAgent", flag: "user-agent", env: "USER_AGENT", kind: text("text"), usage: "User-Agent of HTTP requests"},
		{script: "httpDebug", flag: "http-debug", env: "HTTP_DEBUG", kind: oneOf("headers", "full").standingAlone("headers"), usage: "log HTTP requests and responses; =full with their bodies"},
		{script: "insecureSkipTLSVerify", flag: "insecure-skip-tls-verify", env: "INSECURE_SKIP_TLS_VERIFY", kind: toggle(), usage: "do not verify TLS certificates"},
		{script: "noConnectionReuse", flag: "no-connection-reuse", env: "NO_CONNECTION_REUSE", kind: toggle(), usage: "open a connection for each request"},
		{script: "noVUConnectionReuse", flag: "no-vu-connection-reuse", env: "NO_VU_CONNECTION_REUSE", kind: toggle(), usage: "open new connections in each iteration"},
		{script: "noCookiesReset", env: "NO_COOKIES_RESET", kind: toggle()},
		{script: "minIterationDuration", flag: "min-iteration-duration", env: "MIN_ITERATION_DURATION", kind: span(), usage: "pad shorter iterations to this"},
		{script: "throw", flag: "throw", short: "w", env: "THROW", kind: toggle(), usage: "throw on failed requests, such as a refused connection"},
		{script: "blacklistIPs", flag: "blacklist-ip", env: "BLACKLIST_IPS", kind: ranges(), usage: "addresses that must not be called; repeat for more"},
		{script: "blockHostnames", flag: "block-hostnames", env: "BLOCK_HOSTNAMES", kind: list("PATTERN"), usage: "host names that must not be called, a leading * allowed; repeat for more"},
		{script: "dns", flag: "dns", env: "DNS", kind: dns(), usage: "how names are resolved"},
		{script: "localIPs", flag: "local-ips", env: "LOCAL_IPS", kind: text("RANGES"), usage: "addresses to call from, as addresses, ranges A-B and CIDRs"},
		{script: "discardResponseBodies", flag: "discard-response-bodies", env: "DISCARD_RESPONSE_BODIES", kind: toggle(), usage: "do not keep the bodies of responses"},
		{script: "summaryTrendStats", flag: "summary-trend-stats", env: "SUMMARY_TREND_STATS", kind: list("STATS"), usage: "statistics of trends in the summary, for example avg,p(99)"},
		{script: "summaryTimeUnit", flag: "summary-time-unit", env: "SUMMARY_TIME_UNIT", kind: oneOf("s", "ms", "us"), usage: "unit of times in the summary"},
		{script: "systemTags", flag: "system-tags", env: "SYSTEM_TAGS", kind: list("TAGS"), usage: "system tags that samples carry"},
		{script: "tags", flag: "tag", env: "TAGS", kind: tags(), usage: "a tag for every sample, in place of the script's; repeat for more"},
		{script: "consoleOutput", flag: "console-output", env: "CONSOLE_OUTPUT", kind: text("FILE"), usage: "write what the script's console prints to this file"},
	}
}

// Names of the flags that this package reads itself.
const (
	flagEnv             = "env"
	flagSystemEnv       = "include-system-env-vars"
	flagOut             = "out"
	flagConfig          = "config"
	flagLogOutput       = "log-output"
	flagLogFormat       = "log-format"
	flagVerbose         = "verbose"
	flagQuiet           = "quiet"
	flagNoColor         = "no-color"
	flagNoThresholds    = "no-thresholds"
	flagNoSummary       = "no-summary"
	flagSummaryMode     = "summary-mode"
	flagSummaryExport   = "summary-export"
	flagCompatibility   = "compatibility-mode"
	flagSecretSource    = "secret-source"
	flagAllowRemote     = "allow-remote"
	flagLinger          = "linger"
	flagType            = "type"
	flagAddress         = "address"
	flagNoUsageReport   = "no-usage-report"
	flagProfiling       = "profiling-enabled"
	flagTracesOutput    = "traces-output"
	summaryModeCompact  = "compact"
	summaryModeFull     = "full"
	summaryModeDisabled = "disabled"
)

// runtimeOptions stand in no script.
func runtimeOptions() []option {
	return []option{
		{flag: flagEnv, short: "e", kind: variables(), usage: "a variable for the script's __ENV; repeat for more"},
		{flag: flagSystemEnv, env: "INCLUDE_SYSTEM_ENV_VARS", kind: toggle(), usage: "show the environment of this process to the script (default true)"},
		{flag: flagOut, short: "o", env: "OUT", kind: outputs(), usage: "send samples to json, csv, prometheus-rw or opentelemetry; repeat for more"},
		{flag: flagConfig, short: "c", env: "CONFIG", kind: text("FILE"), usage: "options in JSON (default ~/.config/k6/config.json)"},
		{flag: flagLogOutput, env: "LOG_OUTPUT", kind: text("DESTINATION"), usage: "stderr, stdout, none or file=PATH[,level=LEVEL] (default stderr)"},
		{flag: flagLogFormat, env: "LOG_FORMAT", kind: oneOf("text", "json", "raw"), usage: "format of the log (default text)"},
		{flag: flagVerbose, short: "v", kind: toggle(), usage: "log debugging messages too"},
		{flag: flagQuiet, short: "q", kind: toggle(), usage: "print no progress"},
		{flag: flagNoColor, env: "NO_COLOR", kind: toggle(), usage: "print no colours"},
		{flag: flagNoThresholds, env: "NO_THRESHOLDS", kind: toggle(), usage: "ignore thresholds"},
		{flag: flagNoSummary, env: "NO_SUMMARY", kind: toggle(), usage: "the same as --summary-mode=disabled"},
		{flag: flagSummaryMode, env: "SUMMARY_MODE", kind: oneOf(summaryModeCompact, summaryModeFull, summaryModeDisabled), usage: "how much the summary shows (default compact)"},
		{flag: flagSummaryExport, env: "SUMMARY_EXPORT", kind: text("FILE"), usage: "write the summary as JSON to this file"},
		{flag: flagCompatibility, env: "COMPATIBILITY_MODE", kind: oneOf("extended", "base", "experimental_enhanced"), usage: "base hides the global object \"global\" (default extended)"},
		{flag: flagSecretSource, env: "SECRET_SOURCE", kind: array("SOURCE"), usage: "where k6/secrets finds secrets, for example file=PATH; repeat for more"},
		{flag: flagAllowRemote, env: "ALLOW_REMOTE", kind: toggle(), usage: "let scripts import modules from https:// URLs"},
		{flag: flagLinger, short: "l", env: "LINGER", kind: toggle(), usage: "stay after the end of the run until interrupted"},
		{flag: flagType, short: "t", env: "TYPE", kind: oneOf("js"), usage: "what the argument is: js"},
		{flag: flagAddress, short: "a", env: "ADDRESS", kind: text("ADDRESS"), usage: "accepted for the sake of k6's command lines; there is no REST API"},
		{flag: flagNoUsageReport, kind: toggle(), usage: "accepted for the sake of k6's command lines; nothing is ever reported"},
		{flag: flagProfiling, kind: toggle(), usage: "accepted for the sake of k6's command lines"},
		{flag: flagTracesOutput, env: "TRACES_OUTPUT", kind: text("DESTINATION"), usage: "accepted for the sake of k6's command lines; only none"},
	}
}

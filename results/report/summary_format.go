package report

import (
	"math"
	"strconv"
	"time"

	"github.com/metachaos/metachaos/results"
)

// formatValue writes one statistic of a metric in the unit that fits it.
func (st SummaryStyle) formatValue(kind results.MetricKind, contains results.Contains, stat string, v float64) string {
	switch {
	case kind == results.Rate && stat == "rate":
		return formatPercent(v)
	case kind == results.Counter && stat == "rate":
		return st.formatAmount(contains, v) + "/s"
	case stat == "count" && kind == results.Trend:
		return formatNumber(v)
	}
	return st.formatAmount(contains, v)
}

func (st SummaryStyle) formatAmount(contains results.Contains, v float64) string {
	switch contains {
	case results.ContainsTime:
		return st.formatTime(v)
	case results.ContainsData:
		return formatBytes(v)
	}
	return formatNumber(v)
}

// formatTime writes milliseconds in the unit of the style.
func (st SummaryStyle) formatTime(ms float64) string {
	switch st.TimeUnit {
	case "s":
		return decimal(ms/1e3) + "s"
	case "ms":
		return decimal(ms) + "ms"
	case "us":
		return decimal(ms*1e3) + "µs"
	}
	return formatMillis(ms)
}

func formatPercent(share float64) string {
	return strconv.FormatFloat(share*100, 'f', 2, 64) + "%"
}

// formatNumber writes whole numbers as they are and others with at most six
// significant decimals.
func formatNumber(v float64) string {
	if v == math.Trunc(v) && math.Abs(v) < 1e15 {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(math.Round(v*1e6)/1e6, 'f', -1, 64)
}

// formatMillis writes milliseconds as a duration of three or four digits.
func formatMillis(ms float64) string {
	d := time.Duration(ms * float64(time.Millisecond))
	switch abs := d.Abs(); {
	case abs >= time.Minute:
		return d.Round(time.Second).String()
	case abs >= time.Second:
		return decimal(d.Seconds()) + "s"
	case abs >= time.Millisecond:
		return decimal(ms) + "ms"
	case abs >= time.Microsecond:
		return decimal(ms*1e3) + "µs"
	case d == 0:
		return "0s"
	}
	return decimal(ms*1e6) + "ns"
}

func formatBytes(v float64) string {
	units := [...]string{"B", "kB", "MB", "GB", "TB", "PB"}
	i := 0
	for math.Abs(v) >= 1000 && i < len(units)-1 {
		v /= 1000
		i++
	}
	if i == 0 {
		return strconv.FormatFloat(v, 'f', 0, 64) + " B"
	}
	return strconv.FormatFloat(v, 'f', 1, 64) + " " + units[i]
}

// decimal writes two decimals and drops zeros at the end.
func decimal(v float64) string {
	return strconv.FormatFloat(math.Round(v*100)/100, 'f', -1, 64)
}

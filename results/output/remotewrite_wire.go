package output

import (
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// label is one label of a series.
type label struct{ name, value string }

// point is the state of one series at one moment: a number or a histogram.
type point struct {
	labels    []label // sorted by name
	value     float64
	histogram *histogram
}

// Field numbers of the messages of remote write 1.0: WriteRequest, TimeSeries,
// Label, Sample, Histogram and BucketSpan.
const (
	requestSeries   = 1
	seriesLabels    = 1
	seriesSamples   = 2
	seriesHistogram = 4
	labelName       = 1
	labelValue      = 2
	sampleValue     = 1
	sampleTime      = 2

	histogramCount          = 1
	histogramSum            = 3
	histogramSchemaField    = 4
	histogramZeroThreshold  = 5
	histogramZeroCount      = 6
	histogramNegativeSpans  = 8
	histogramNegativeDeltas = 9
	histogramPositiveSpans  = 11
	histogramPositiveDeltas = 12
	histogramTime           = 15

	spanOffset = 1
	spanLength = 2
)

// staleNaN returns the value that ends a series.
func staleNaN() float64 { return math.Float64frombits(0x7ff0000000000002) }

// encodeRequest returns a WriteRequest with one value for each point.
func encodeRequest(points []point, unixMilli int64) []byte {
	var request []byte
	for _, p := range points {
		var series []byte
		for _, l := range p.labels {
			series = appendMessage(series, seriesLabels, appendText(appendText(nil, labelName, l.name), labelValue, l.value))
		}
		if p.histogram != nil {
			series = appendMessage(series, seriesHistogram, encodeHistogram(p.histogram, unixMilli))
		} else {
			sample := appendVarint(appendDouble(nil, sampleValue, p.value), sampleTime, uint64(unixMilli))
			series = appendMessage(series, seriesSamples, sample)
		}
		request = appendMessage(request, requestSeries, series)
	}
	return request
}

func encodeHistogram(h *histogram, unixMilli int64) []byte {
	b := appendVarint(nil, histogramCount, h.count)
	b = appendDouble(b, histogramSum, h.sum)
	b = appendVarint(b, histogramSchemaField, protowire.EncodeZigZag(histogramSchema))
	b = appendDouble(b, histogramZeroThreshold, zeroThreshold)
	b = appendVarint(b, histogramZeroCount, h.zeros)
	b = appendBuckets(b, h.negative, histogramNegativeSpans, histogramNegativeDeltas)
	b = appendBuckets(b, h.positive, histogramPositiveSpans, histogramPositiveDeltas)
	return appendVarint(b, histogramTime, uint64(unixMilli))
}

func appendBuckets(b []byte, buckets map[int]uint64, spansField, deltasField protowire.Number) []byte {
	runs, deltas := spans(buckets)
	for _, s := range runs {
		span := appendVarint(nil, spanOffset, protowire.EncodeZigZag(int64(s.offset)))
		b = appendMessage(b, spansField, appendVarint(span, spanLength, uint64(s.length)))
	}
	if len(deltas) == 0 {
		return b
	}
	var packed []byte
	for _, d := range deltas {
		packed = protowire.AppendVarint(packed, protowire.EncodeZigZag(d))
	}
	return appendMessage(b, deltasField, packed)
}

func appendMessage(b []byte, field protowire.Number, message []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), message)
}

func appendText(b []byte, field protowire.Number, text string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), text)
}

func appendVarint(b []byte, field protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), v)
}

func appendDouble(b []byte, field protowire.Number, v float64) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(b, field, protowire.Fixed64Type), math.Float64bits(v))
}

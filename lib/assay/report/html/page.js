'use strict';

// Okabe and Ito's colours, told apart by all kinds of colour vision; what differs in colour differs
// in its line and mark too.
const COLOURS = ['#0072B2', '#D55E00', '#009E73', '#CC79A7', '#56B4E9', '#E69F00', '#8C6D1F', '#808080'];
const LINES = ['solid', 'dash', 'dot', 'dashdot', 'longdash'];
const MARKS = ['circle', 'square', 'diamond', 'triangle-up', 'x', 'star'];
const PATTERNS = ['', '/', '.', 'x', '-'];

const dark = matchMedia('(prefers-color-scheme: dark)');
let printing = false;
const charts = JSON.parse(document.getElementById('data').textContent);

// Plotly takes some of HTML for markup.
const text = (words) => words.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
const of = (list, number) => list[number % list.length];

// ---------------------------------------------------------------- tables

function number(cell) {
  const found = cell.match(/-?\d[\d.]*(e[-+]?\d+)?/i);
  return found ? Number(found[0]) : NaN;
}

function compare(one, other) {
  const [a, b] = [number(one), number(other)];
  // What has no number stands behind what has one.
  if (Number.isNaN(a) || Number.isNaN(b)) {
    return Number.isNaN(a) - Number.isNaN(b) || one.localeCompare(other);
  }
  return a - b;
}

function sort(table, heading, isNumber) {
  const column = heading.cellIndex;
  const down = heading.getAttribute('aria-sort') === 'ascending';
  for (const other of table.tHead.rows[0].cells) other.removeAttribute('aria-sort');
  heading.setAttribute('aria-sort', down ? 'descending' : 'ascending');
  const rows = [...table.tBodies[0].rows].map((row) => [row.cells[column].textContent.trim(), row]);
  const empty = ([cell]) => cell === '-' || cell === '';
  rows.sort((one, other) => {
    if (empty(one) || empty(other)) return empty(one) - empty(other);
    const order = isNumber ? compare(one[0], other[0]) : one[0].localeCompare(other[0]);
    return down ? -order : order;
  });
  table.tBodies[0].append(...rows.map(([, row]) => row));
}

function makeUsable(table) {
  const rows = [...table.tBodies[0].rows];
  for (const heading of table.tHead.rows[0].cells) {
    const button = document.createElement('button');
    button.type = 'button';
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener('click', () => sort(table, heading, heading.className === 'n'));
  }
  const filter = document.getElementById(`${table.id}-filter`);
  const verdict = document.getElementById(`${table.id}-verdict`);
  const count = document.getElementById(`${table.id}-count`);
  let texts;
  const apply = () => {
    texts ??= rows.map((row) => [...row.cells].map((cell) => cell.textContent).join(' ').toLowerCase());
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    rows.forEach((row, place) => {
      const its = row.cells[0].textContent.replace(/^\S+ /, '');
      row.hidden = !words.every((word) => texts[place].includes(word)) ||
        (verdict.value !== '' && its !== verdict.value);
      shown += !row.hidden;
    });
    count.textContent = `${shown} of ${rows.length} figures`;
  };
  filter.addEventListener('input', apply);
  verdict.addEventListener('change', apply);
  count.textContent = `${rows.length} of ${rows.length} figures`;
  filter.closest('.tools').hidden = false;
}

// ---------------------------------------------------------------- charts

function colours() {
  const style = getComputedStyle(document.documentElement);
  const light = printing || !dark.matches;
  return {
    text: light ? '#1b2430' : style.getPropertyValue('--text').trim(),
    line: light ? '#d9dee5' : style.getPropertyValue('--line').trim(),
    first: light ? COLOURS[0] : '#3d9be0',
  };
}

function traces(chart, shade) {
  const bars = chart.kind !== 'lines';
  const named = new Set();
  return chart.series.map((one) => {
    const colour = one.colour % COLOURS.length ? of(COLOURS, one.colour) : shade.first;
    const group = one.group || one.name;
    const legend = {name: text(group), legendgroup: text(group), showlegend: !named.has(group)};
    named.add(group);
    const value = `${bars ? '%{x:.4~g}%<br>%{y}' : '%{x}: %{y:.4~g}'}<extra>${text(one.name)}</extra>`;
    const places = one.at.map((place) => (typeof place === 'string' ? text(place) : place));
    const [x, y] = bars ? [one.values, places] : [places, one.values];
    if (bars && one.form !== 'marks') {
      return {
        type: 'bar', orientation: 'h', ...legend, x, y, hovertemplate: value,
        marker: {color: colour, pattern: {shape: of(PATTERNS, one.style), fillmode: 'overlay', fgcolor: '#fff', fgopacity: 0.7, size: 6}},
      };
    }
    const mode = {line: 'lines+markers', faint: 'lines', marks: 'markers'}[one.form];
    const mark = bars ? {color: shade.text, symbol: 'line-ns-open', size: 14, line: {width: 3, color: shade.text}} :
      {color: colour, symbol: one.form === 'marks' ? 'star-open' : of(MARKS, one.style), size: one.form === 'marks' ? 16 : 6};
    return {
      type: 'scatter', mode, ...legend, x, y, opacity: one.form === 'faint' ? 0.6 : 1, hovertemplate: value,
      line: {color: colour, dash: one.form === 'faint' ? 'dot' : of(LINES, one.style), width: 2}, marker: mark,
    };
  });
}

function axis(what, shade, numbers = []) {
  const spread = Math.max(...numbers) / Math.min(...numbers);
  return {
    title: {text: text(what.title), standoff: 8},
    type: what.is_logarithmic ? 'log' : '-',
    // Powers would be set in a style of their own, which the policy of the page forbids.
    exponentformat: 'none',
    // Within two decades Plotly finds better places than the decades.
    ...(what.is_logarithmic && spread > 100 ? {dtick: 1} : {}),
    gridcolor: shade.line, zerolinecolor: shade.line, linecolor: shade.line, automargin: true,
  };
}

function layout(chart, shade, width) {
  const bars = chart.kind !== 'lines';
  const groups = chart.kind === 'bars' ? chart.series.filter((one) => one.form !== 'marks').length : 1;
  const xaxis = axis(chart.across, shade);
  const yaxis = bars ?
    {...axis(chart.upwards, shade), type: 'category', autorange: 'reversed', categoryorder: 'array', categoryarray: chart.places.map(text)} :
    axis(chart.upwards, shade, chart.series.flatMap((one) => one.values));
  if (bars) xaxis.rangemode = 'tozero';
  if (chart.kind === 'stacked') xaxis.range = [0, 100];
  if (!bars && chart.across.title.includes('[B]')) {
    const sizes = [[1, '1'], [16, '16'], [256, '256'], [4096, '4 Ki'], [65536, '64 Ki'], [1048576, '1 Mi'], [16777216, '16 Mi']];
    Object.assign(xaxis, {tickvals: sizes.map(([at]) => at), ticktext: sizes.map(([, name]) => name)});
  } else if (!bars) {
    Object.assign(xaxis, {tickvals: chart.places});
  }
  const entries = new Set(chart.series.map((one) => one.group || one.name));
  const widest = 60 + 6.5 * Math.max(...[...entries].map((name) => name.length));
  const rows = Math.ceil(entries.size / Math.max(1, Math.floor((width - 80) / widest)));
  // On paper a chart has to go on one page.
  const most = printing ? 480 : Infinity;
  const plot = bars ? Math.min(most, 40 + chart.places.length * (10 + 12 * groups)) : 300;
  return {
    autosize: false, width, height: plot + 90 + 24 * rows,
    barmode: chart.kind === 'stacked' ? 'stack' : 'group', bargap: 0.25,
    font: {color: shade.text, size: printing ? 9 : 12, family: getComputedStyle(document.body).fontFamily},
    paper_bgcolor: 'rgba(0,0,0,0)', plot_bgcolor: 'rgba(0,0,0,0)',
    margin: {l: 60, r: 16, t: 12, b: 70 + 24 * rows}, xaxis, yaxis,
    legend: {orientation: 'h', x: 0, y: -60 / plot, yref: 'paper', yanchor: 'top', font: {size: 11}},
    showlegend: true, barcornerradius: 2,
  };
}

function draw(place, width) {
  const shade = colours();
  const box = document.querySelector(`#c${place + 1} .chart`);
  const chart = charts[place];
  const size = width ?? Math.max(280, box.clientWidth);
  const config = {displaylogo: false, displayModeBar: false, responsive: false};
  return window.Plotly.react(box, traces(chart, shade), layout(chart, shade, size), config);
}

async function inflate(packed) {
  const bytes = Uint8Array.from(atob(packed), (sign) => sign.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Response(stream).text();
}

async function start() {
  if (!charts.length) return;
  const script = document.createElement('script');
  script.textContent = await inflate(document.getElementById('plotly').textContent);
  document.head.append(script);
  document.documentElement.classList.add('drawn');
  const drawn = new Set();
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries.filter((one) => one.isIntersecting)) {
      const place = Number(entry.target.id.slice(1)) - 1;
      seen.unobserve(entry.target);
      drawn.add(place);
      draw(place);
    }
  }, {rootMargin: '600px'});
  charts.forEach((chart, place) => {
    const figure = document.getElementById(`c${place + 1}`);
    figure.classList.toggle('wide', chart.kind !== 'lines');
    seen.observe(figure);
  });
  const again = () => drawn.forEach((place) => draw(place));
  let resized;
  addEventListener('resize', () => {
    clearTimeout(resized);
    resized = setTimeout(again, 150);
  });
  dark.addEventListener('change', again);
  addEventListener('beforeprint', () => {
    printing = true;
    charts.forEach((chart, place) => {
      seen.unobserve(document.getElementById(`c${place + 1}`));
      drawn.add(place);
      draw(place, chart.kind === 'lines' ? 470 : 980);
    });
  });
  addEventListener('afterprint', () => {
    printing = false;
    again();
  });
  document.documentElement.dataset.ready = 'yes';
}

document.documentElement.classList.remove('arriving');
for (const table of document.querySelectorAll('table.figures')) makeUsable(table);
start();

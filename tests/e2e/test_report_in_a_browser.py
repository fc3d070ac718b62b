"""The page of a run in a real browser: it draws, sorts, filters and prints, and asks nobody."""

import base64
import json
import re
import shutil
import time
from dataclasses import replace

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

import witnessed
from assay.report.html import page
from assay.report.html.screened import screening_section
from assay.results.history import of_file
from assay.screening.verdict import judge_screening
from pages import FIGURES, HOSTILE, filled, found_in, history_of
from reports import cases
from screenings import BEGUN, screening, slow_links

BROWSER, DRIVER = (
    next(filter(None, map(shutil.which, names)), None)
    for names in (('chromium', 'chromium-browser', 'google-chrome'), ('chromedriver',))
)
MISSING = [what for what, path in (('chromium', BROWSER), ('chromedriver', DRIVER)) if not path]

pytestmark = pytest.mark.skipif(bool(MISSING), reason=f'not here: {" and ".join(MISSING)}')

#: What the browser itself would ask of a network, and what containers have not.
OPTIONS = [
    *('--headless=new', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run'),
    *('--disable-background-networking', '--disable-component-update', '--disable-sync'),
    *('--disable-dev-shm-usage', '--window-size=1280,900'),
]


@pytest.fixture(scope='module')
def browser(tmp_path_factory):
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for option in [*OPTIONS, f'--user-data-dir={tmp_path_factory.mktemp("browser")}']:
        options.add_argument(option)
    options.set_capability('goog:loggingPrefs', {'browser': 'ALL', 'performance': 'ALL'})
    driver = webdriver.Chrome(options=options, service=Service(executable_path=DRIVER))
    yield driver
    driver.quit()


def wait_until(is_so):
    """Wait for what takes the time that it takes; what hangs ends with the test."""
    while not (found := is_so()):
        time.sleep(0.02)
    return found


@pytest.fixture
def opened(browser, golden_report, tmp_path):
    """Opens the page of a run of six cases, changed by a function; the charts are drawn.

    One is of an application whose witness was there, with a plan for its ranks, and the partition
    was screened before.
    """

    def open_it(change=lambda report: None, node='n3', **others):
        report = filled(golden_report, 6, tmp_path / 'output')
        cases(report)[0]['implementation'] = 'assay'
        job = witnessed.write(tmp_path / 'output' / 'witness.json', crowded(node))
        plan = witnessed.kept_plan([0, 4, 2, 3, 1, 5, 6, 7])
        job.with_name('witness.json.plan').write_text(json.dumps(plan))
        change(report)
        path = tmp_path / 'page.html'
        page.write_page(path, page.page(found_in(report, screened=[one_bad(node)], **others)))
        show(browser, path)
        return browser

    return open_it


def show(browser, path):
    """Open a page; the charts are drawn."""
    browser.get_log('browser'), browser.get_log('performance')
    browser.get(path.as_uri())
    wait_until(lambda: browser.execute_script('return document.documentElement.dataset.ready'))
    for figure in browser.find_elements(By.TAG_NAME, 'figure'):
        browser.execute_script("arguments[0].scrollIntoView({behavior: 'instant'})", figure)
        wait_until(lambda figure=figure: figure.find_elements(By.CSS_SELECTOR, '.xtitle'))


def one_bad(name):
    """A screening of nodes of which one is bad, and so is the link between two others."""
    now = screening(slow={('dgemm alone', 3): 0.5})
    now = slow_links(now, lambda a, b: {a, b} == {7, 11}, alone=True)
    now = replace(now, nodes=(*now.nodes[:3], name, *now.nodes[4:]))
    return screening_section(now, judge_screening(now), BEGUN)


def crowded(name):
    """What the witness saw of eight ranks in two domains, of which two shared a core."""
    report = witnessed.halo(8)
    report['processes'][1] |= {'cpus': '0', 'cores': '0'}
    for one in report['processes'][4:]:
        one['numa'] = '1'
    for one in (*report['hosts'], *report['processes']):
        one['name' if 'numa' in one and 'devices' in one else 'host'] = name
    return report


def events(browser, method):
    """What the browser tells of its network since the page was opened."""
    told = (json.loads(entry['message'])['message'] for entry in browser.get_log('performance'))
    return [event['params'] for event in told if event['method'] == f'Network.{method}']


def assert_asked_nobody(browser):
    asked = [event['request']['url'] for event in events(browser, 'requestWillBeSent')]
    assert asked[0].startswith('file:///') and asked[0].endswith('/page.html')
    assert {url.partition(':')[0] for url in asked[1:]} <= {'data', 'blob'}


def rows(browser, table='figures'):
    """The text of the cells of each row of a table that is shown."""
    script = """
    return [...document.querySelectorAll(`#${arguments[0]} tbody tr`)]
      .filter((row) => row.checkVisibility())
      .map((row) => [...row.cells].map((cell) => cell.innerText.trim()));
    """
    return browser.execute_script(script, table)


#: Of a figure: how many values its table has, and how many are drawn; of a map also of how many,
#: and what its colours mean.
DRAWN = """
const box = arguments[0].querySelector('.chart');
const numbers = [...arguments[0].querySelectorAll('.numbers tbody td')];
const told = numbers.filter((one) => one.textContent !== '-').length;
const maps = box.data.filter((one) => one.type === 'heatmap');
const points = box.querySelectorAll('.scatterlayer .points path, .bars .point').length;
if (!maps.length) return [told, points, 0, ''];
const pictures = [...box.querySelectorAll('.hm image')];
const drawn = pictures.filter((one) => one.getAttribute('href').startsWith('data:image/png'));
const values = maps.slice(0, -1).flatMap((one) => one.z.flat()).filter((one) => one !== null);
const right = values.filter((one) => Number.isFinite(one)).length;
const meaning = box.querySelector(`.x${maps.length}title`).textContent;
return [told, drawn.length === maps.length ? right : 0, values.length, meaning];
"""


def assert_drawn(browser, figure):
    """Assert that a chart has all its data, and axes with units; gives what it is of."""
    across, upwards = (figure.find_element(By.CSS_SELECTOR, f'.{axis}title').text for axis in 'xy')
    told, drawn, cells, unit = browser.execute_script(DRAWN, figure)
    assert across and upwards and re.search(r'\[.+\]', unit or across)
    assert told > 0
    assert drawn == (cells or told)
    return figure.find_element(By.TAG_NAME, 'figcaption').text.partition(':')[0]


def test_it_draws_all_charts_and_asks_nobody(opened):
    browser = opened()
    figures = browser.find_elements(By.TAG_NAME, 'figure')
    kinds = [assert_drawn(browser, figure) for figure in figures]
    assert kinds == [
        *('Nodes', 'Pairs', 'Pairs', 'Time one way, by ping-pong between two ranks'),
        *('Bandwidth one way, by ping-pong between two ranks',),
        *('How near to the limits of the machine', 'Where the time of jobs went'),
        *('Who sent to whom', 'Sizes of messages', 'Where ranks sat'),
        *('Who sent to whom, by place', 'Where ranks should sit'),
    ]
    signs = [len(one.find_elements(By.CSS_SELECTOR, '.points path')) for one in figures]
    # The bad node in each figure, the link both ways, and the core of two ranks.
    assert [signs[number] for number in (0, 1, 2, 7, 9)] == [6, 2, 2, 0, 1]
    legend = figures[0].find_element(By.CSS_SELECTOR, '.legend').text
    assert legend.split() == ['bad']
    assert browser.get_log('browser') == []
    assert_asked_nobody(browser)


def test_its_policy_holds(opened):
    """What would be asked for, or run, if something got into the page."""
    browser = opened()
    assert_asked_nobody(browser)
    browser.execute_script(
        "const image = new Image(); image.src = 'http://127.0.0.1:9/x.png';"
        "const inline = document.createElement('script'); inline.textContent = 'window.evil = 1';"
        'document.body.append(image, inline);'
        "fetch('http://127.0.0.1:9/').catch(() => { window.refused = 1; });"
    )
    wait_until(lambda: browser.execute_script('return window.refused'))
    assert browser.execute_script('return window.evil') is None
    (refused,) = events(browser, 'loadingFailed')
    assert refused['blockedReason'] == 'csp'
    assert all('Content Security Policy' in one['message'] for one in browser.get_log('browser'))


def test_filters_and_sorting_by_the_keyboard(opened):
    def one_fails(report):
        case = cases(report)[0]
        case |= {'result': 'fail', 'fail_phase': 'performance'}
        case['perfvalues']['toy:node:bandwidth_of_limit'] = [0.2, 1, -0.5, None, '1', 'fail']
        case['perfvalues']['toy:node:bandwidth'][0] = 10_000.0

    browser = opened(one_fails, word='FAILED')
    assert len(rows(browser)) == 24
    filter_field = browser.find_element(By.ID, 'figures-filter')
    filter_field.send_keys('TCP  bandwidth')
    wait_until(lambda: len(rows(browser)) == 4)
    assert all('tcp' in row[3] and 'bandwidth' in row[5] for row in rows(browser))
    assert browser.find_element(By.ID, 'figures-count').text == '4 of 24 figures'
    filter_field.clear()
    filter_field.send_keys(Keys.SPACE)
    verdict = browser.find_element(By.ID, 'figures-verdict')
    verdict.send_keys('fail')
    wait_until(lambda: len(rows(browser)) == 1)
    assert rows(browser)[0][0] == '✗ fail'
    verdict.send_keys(Keys.HOME)
    wait_until(lambda: len(rows(browser)) == 24)

    buttons = browser.find_elements(By.CSS_SELECTOR, '#figures thead button')
    (button,) = [one for one in buttons if one.text == 'value']
    button.send_keys(Keys.ENTER)
    numbers = [float(row[6].partition(' ')[0]) for row in rows(browser)]
    assert numbers == sorted(numbers) and numbers[-2:] == [9000, 10_000]
    (button,) = [one for one in buttons if one.text == 'of limit']
    heading = button.find_element(By.XPATH, '..')
    button.send_keys(Keys.ENTER)
    assert heading.get_attribute('aria-sort') == 'ascending'
    last = [row[-1] for row in rows(browser)]
    assert last[0] == '20.0%' and last[-1] == '-'
    numbers = [float(text[:-1]) for text in last if text != '-']
    assert numbers == sorted(numbers)
    button.send_keys(Keys.SPACE)
    assert heading.get_attribute('aria-sort') == 'descending'
    last = [row[-1] for row in rows(browser)]
    assert last[0] == '71.4%' and last[-1] == '-'
    assert browser.get_log('browser') == []


def test_figures_of_two_systems_are_filtered_and_sorted_too(opened, golden_report, tmp_path):
    other = filled(golden_report, 6)
    for case in cases(other):
        case |= {'system': 'other', 'directions': {'latency': 'lower'}}
    cases(other)[1]['perfvalues']['toy:node:latency'][0] = 0.1
    (tmp_path / 'other.json').write_text(json.dumps(other))

    browser = opened(beside=(*of_file(tmp_path / 'other.json'), other))
    # Those of the case of an application have no partner.
    assert len(rows(browser, 'two')) == 45
    browser.find_element(By.ID, 'two-verdict').send_keys('other')
    wait_until(lambda: len(rows(browser, 'two')) == 1)
    ((better, *_, here, there, ratio, direction),) = rows(browser, 'two')
    assert (better, here, there) == ('other', '0.4700 us', '0.1000 us')
    assert (ratio, direction) == ('4.700', 'lower is better')
    (button,) = [
        one
        for one in browser.find_elements(By.CSS_SELECTOR, '#two thead button')
        if one.text == 'ratio'
    ]
    browser.find_element(By.ID, 'two-verdict').send_keys(Keys.HOME)
    button.send_keys(Keys.ENTER)
    button.send_keys(Keys.ENTER)
    wait_until(lambda: len(rows(browser, 'two')) == 45)
    assert rows(browser, 'two')[0][-2] == '4.700'
    assert browser.get_log('browser') == []


def test_a_link_opens_what_it_leads_to(opened):
    browser = opened()
    row = browser.find_element(By.CSS_SELECTOR, '#rest tbody tr')
    assert not row.is_displayed()
    browser.execute_script('location.hash = arguments[0]', row.get_attribute('id'))
    wait_until(row.is_displayed)
    assert 'comm_share' in row.text


def test_hostile_text_is_shown_as_text(opened, tmp_path):
    texts = [text for text in HOSTILE if text.isprintable()]

    def spoil(report):
        for number, case in enumerate(cases(report)):
            text = texts[number % len(texts)]
            case |= {'result': 'fail', 'fail_phase': 'sanity', 'fail_reason': f'x: {text}'}
            case['environ'] = case['fabric'] = text
            case['display_name'] = f'PointToPoint %fabric={number} {text}'
            case['stagedir'] = case['outputdir']
        (tmp_path / 'output' / 'rfm_job.out').write_text('\n'.join(HOSTILE), errors='replace')

    browser = opened(spoil, node=texts[0], word='FAILED', problems=texts)
    text = browser.find_element(By.TAG_NAME, 'body').text
    assert all(one in text for one in texts)
    legend = browser.find_element(By.CSS_SELECTOR, '#charts .legend').text
    assert texts[0] in legend
    ticks = [one.text for one in browser.find_elements(By.CSS_SELECTOR, '#screening .ytick')]
    assert texts[0][:23] in ' '.join(ticks)
    assert not browser.find_elements(By.CSS_SELECTOR, 'img, iframe, object, [onerror]')
    assert browser.get_log('browser') == []
    assert_asked_nobody(browser)


def test_it_prints(opened):
    browser = opened()
    features = [{'name': 'prefers-color-scheme', 'value': 'dark'}]
    browser.execute_cdp_cmd('Emulation.setEmulatedMedia', {'features': features})
    assert pages_printed(browser) > 1
    assert browser.get_log('browser') == []


def pages_printed(browser):
    """How many pages the PDF of it has."""
    asked = {'printBackground': True, 'preferCSSPageSize': True}
    document = base64.b64decode(browser.execute_cdp_cmd('Page.printToPDF', asked)['data'])
    assert document.startswith(b'%PDF') and document.rstrip().endswith(b'%%EOF')
    return len(re.findall(rb'/Type */Page\b', document))


def test_without_javascript_all_can_be_read(opened):
    browser = opened()
    browser.execute_cdp_cmd('Emulation.setScriptExecutionDisabled', {'value': True})
    browser.refresh()
    try:
        wait_until(lambda: browser.find_elements(By.ID, 'history') or rows(browser))
        assert len(rows(browser)) == 24
        assert not browser.find_element(By.ID, 'figures-filter').is_displayed()
        assert 'need JavaScript' in browser.find_element(By.ID, 'charts').text
        browser.find_element(By.CSS_SELECTOR, 'figure summary').send_keys(Keys.ENTER)
        assert browser.find_element(By.CSS_SELECTOR, 'figure .numbers').is_displayed()
    finally:
        browser.execute_cdp_cmd('Emulation.setScriptExecutionDisabled', {'value': False})


# Thousands of cases -------------------------------------------------------------------------------

CASES, RUNS = 5000, 200
#: Rows of a table that are laid out at first (page.js).
AT_ONCE = 1000


@pytest.fixture
def large(browser, golden_report, tmp_path):
    """The page of one that failed, of which the newest jobs alone still have their files."""
    report = filled(golden_report, CASES, tmp_path / 'output', FIGURES[3:4])
    for number, case in enumerate(cases(report)):
        case['outputdir'] = case['outputdir'] if number < 6 else '/nowhere'
        case['perfvalues']['toy:node:bandwidth_of_limit'][0] = 0.6 + number * 1e-5
    last = cases(report)[-1]
    last |= {'result': 'fail', 'fail_phase': 'performance', 'fabric': 'ucx-tcp'}
    last['perfvalues']['toy:node:bandwidth_of_limit'] = [0.2, 1, -0.5, None, '1', 'fail']
    history = history_of(report, RUNS, tmp_path)
    path = tmp_path / 'page.html'
    found = found_in(report, 'FAILED', ['1 of 5000 cases failed'], history=history)
    page.write_page(path, page.page(found))
    assert path.stat().st_size < 5_000_000 * CASES / 1000
    show(browser, path)
    return browser


@pytest.mark.slow
def test_a_page_of_thousands_of_cases(large):
    """It is used as a small one is: by the keyboard, without an error, on paper, and alone."""
    figures = large.find_elements(By.TAG_NAME, 'figure')
    assert [assert_drawn(large, one) for one in figures] == [
        'Time one way, by ping-pong between two ranks',
        'Bandwidth one way, by ping-pong between two ranks',
        'How near to the limits of the machine',
    ]
    count, more = (
        large.find_element(By.CSS_SELECTOR, one) for one in ('#figures-count', 'div + .more')
    )
    shown = rows(large)
    assert len(shown) == AT_ONCE and count.text == f'{CASES} of {CASES} figures'
    assert more.text.startswith(f'The first {AT_ONCE} of {CASES} figures are shown.')
    assert '\u2581' <= max(shown[0][-1]) <= '\u2588'

    # What is not laid out is found, by its verdict and by words; a fabric is one.
    filter_field = large.find_element(By.ID, 'figures-filter')
    filter_field.send_keys('X-tcp limit', Keys.TAB)
    wait_until(lambda: count.text == f'1 of {CASES} figures')
    assert [(row[0], row[3]) for row in rows(large)] == [('✗ fail', 'ucx-tcp')]
    failed = large.find_element(By.CSS_SELECTOR, '#figures tbody tr').get_attribute('id')
    large.switch_to.active_element.send_keys('pass')
    wait_until(lambda: count.text == f'0 of {CASES} figures')

    # A link leads to what is not there, whatever the filters are.
    large.execute_script('location.hash = arguments[0]', failed)
    (row,) = wait_until(lambda: large.find_elements(By.CSS_SELECTOR, 'tr:target'))
    assert row.is_displayed() and 'ucx-tcp' in row.text
    assert count.text == f'{CASES} of {CASES} figures' and filter_field.get_property('value') == ''

    filter_field.send_keys('tcp')
    wait_until(lambda: count.text == f'1667 of {CASES} figures')

    # All are sorted, and not only those that are there.
    (button,) = [
        one
        for one in large.find_elements(By.CSS_SELECTOR, '#figures thead button')
        if one.text == 'value'
    ]
    button.send_keys(Keys.ENTER)
    values = [row[6] for row in rows(large)]
    assert values == sorted(values) and values[0] == '0.2000' and len(values) == AT_ONCE
    button.send_keys(Keys.SPACE)
    values = [row[6] for row in rows(large)]
    assert values == sorted(values, reverse=True) and values[0] == '0.6500'
    more.find_element(By.TAG_NAME, 'button').send_keys(Keys.ENTER)
    wait_until(lambda: not more.is_displayed())
    assert len(rows(large)) == 1667

    # Each row takes its time on paper.
    filter_field.send_keys(' x-')
    wait_until(lambda: count.text == f'1 of {CASES} figures')
    assert pages_printed(large) > 1
    assert large.get_log('browser') == []
    assert_asked_nobody(large)

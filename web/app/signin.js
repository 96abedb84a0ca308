// The page for those who are not signed in: sign in, or make an account.

import { register, signIn } from '../sdk/nudge.js'
import { errorText, t } from '../texts.js'
import { h } from './dom.js'

/** `onLogin(login)` is told of the login. `notice` is shown above the form. */
export function signInPage(onLogin, notice) {
  let isNew = false
  const error = h('p', { class: 'form-error', role: 'alert' }, notice ?? '')
  const title = h('h1', {}, '')
  const name = field('username', t('username'), { autocomplete: 'username', pattern: '[A-Za-z0-9]{4,30}', title: t('usernameRule') })
  const nickname = field('nickname', t('nickname'), { autocomplete: 'nickname', maxlength: 30 })
  const password = field('password', t('password'), { type: 'password', minlength: 4, maxlength: 16 })
  const submit = h('button', { type: 'submit', class: 'primary wide' }, '')
  const other = h('button', { type: 'button', class: 'link', onclick: () => show(!isNew) }, '')
  const form = h('form', { class: 'card', onsubmit: enter }, title, error, name.label, nickname.label, password.label, submit, other)

  function show(asNew) {
    isNew = asNew
    title.textContent = t(isNew ? 'register' : 'signIn')
    submit.textContent = title.textContent
    other.textContent = t(isNew ? 'haveAccount' : 'noAccount')
    nickname.label.hidden = !isNew
    nickname.input.required = isNew
    password.input.autocomplete = isNew ? 'new-password' : 'current-password'
  }

  async function enter(event) {
    event.preventDefault()
    submit.disabled = true
    error.textContent = ''
    try {
      const [user, secret] = [name.input.value.trim(), password.input.value]
      onLogin(await (isNew ? register({}, user, nickname.input.value.trim(), secret) : signIn({}, user, secret)))
    } catch (failure) {
      error.textContent = errorText(failure)
      submit.disabled = false
    }
  }

  show(false)
  const points = ['pointTables', 'pointNudge', 'pointHeal'].map((key) => h('li', {}, t(key)))
  return h(
    'main',
    { class: 'sign-in' },
    h('section', { class: 'welcome' },
      h('img', { src: '/assets/icon.svg', alt: '', width: 56, height: 56 }),
      h('p', { class: 'brand' }, 'Nudge'),
      h('p', { class: 'slogan' }, t('slogan')),
      h('ul', {}, points)),
    form
  )
}

function field(id, text, attributes) {
  const input = h('input', { id, name: id, required: true, ...attributes })
  return { input, label: h('label', { for: id }, h('span', {}, text), input) }
}
